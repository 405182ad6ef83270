import { clone, toBinary } from "@bufbuild/protobuf";
import {
  file_google_protobuf_duration,
  file_google_protobuf_struct,
  FileDescriptorProtoSchema,
  type DescriptorProto,
  type FileDescriptorProto,
} from "@bufbuild/protobuf/wkt";
import type { Server } from "@grpc/grpc-js";
import { ReflectionService } from "@grpc/reflection";
import { service as healthService } from "grpc-health-check";

import { file_run_function } from "../gen/run_function_pb.js";

/** Lets clients ask which services there are and what their messages look like. */
export function addReflection(server: Server): void {
  const ours = [
    file_google_protobuf_duration.proto,
    file_google_protobuf_struct.proto,
    file_run_function.proto,
    withPackageVersion(file_run_function.proto, "v1", "v1beta1"),
  ].map((file) => Buffer.from(toBinary(FileDescriptorProtoSchema, file)));
  // The service reads nothing of a definition but its files.
  const definition = {
    format: "Protocol Buffer 3 DescriptorProto" as const,
    type: {},
    fileDescriptorProtos: [...ours, ...healthFiles()],
  };
  new ReflectionService({ files: definition }).addToServer(server);
}

function healthFiles(): Buffer[] {
  return healthService["Check"]?.requestType.fileDescriptorProtos ?? [];
}

/** The same file as another version of its package: its messages have the same wire form. */
function withPackageVersion(
  file: FileDescriptorProto,
  from: string,
  to: string,
): FileDescriptorProto {
  const copy = clone(FileDescriptorProtoSchema, file);
  const oldScope = `.${file.package}.`;
  copy.package = file.package.replace(new RegExp(`${from}$`), to);
  copy.name = file.name.replace(/\.proto$/, `_${to}.proto`);
  const newScope = `.${copy.package}.`;
  const renamed = (typeName: string) =>
    typeName.startsWith(oldScope)
      ? newScope + typeName.slice(oldScope.length)
      : typeName;
  const renameIn = (message: DescriptorProto): void => {
    for (const field of message.field) field.typeName = renamed(field.typeName);
    message.nestedType.forEach(renameIn);
  };
  copy.messageType.forEach(renameIn);
  for (const service of copy.service) {
    for (const method of service.method) {
      method.inputType = renamed(method.inputType);
      method.outputType = renamed(method.outputType);
    }
  }
  return copy;
}
