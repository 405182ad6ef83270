// A guest (ABI v1) that keeps everything in Go maps, whose order differs from run to run. How it
// writes them is what the step's config.order says: "sorted", as authors are told to, or "as-it-comes".
package main

import (
	"fmt"
	"maps"
	"slices"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// main is required by -buildmode=c-shared and never called.
func main() {}

// Field numbers of apiextensions.fn.proto.v1 (proto/run_function.proto).
const (
	requestInput    = 4
	responseDesired = 2
	stateResources  = 2
	resourceObject  = 1
	entryKey        = 1
	entryValue      = 2
)

const resourceCount = 40

var pinned [][]byte

//go:wasmexport wasmfn_alloc
func wasmfnAlloc(size uint32) unsafe.Pointer {
	buffer := make([]byte, max(size, 1))
	pinned = append(pinned, buffer)
	return unsafe.Pointer(unsafe.SliceData(buffer))
}

//go:wasmexport wasmfn_run
func wasmfnRun(request unsafe.Pointer, size uint32) uint64 {
	response, err := handle(unsafe.Slice((*byte)(request), size))
	if err != nil {
		panic(err)
	}
	pinned = append(pinned, response)
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(response))))<<32 | uint64(len(response))
}

func handle(request []byte) ([]byte, error) {
	input := &structpb.Struct{}
	if err := proto.Unmarshal(fieldOf(request, requestInput), input); err != nil {
		return nil, err
	}
	config := input.GetFields()["config"].GetStructValue()
	switch order := config.GetFields()["order"].GetStringValue(); order {
	case "sorted":
		return respond(sortedNames, proto.MarshalOptions{Deterministic: true})
	case "as-it-comes":
		return respond(names, proto.MarshalOptions{})
	default:
		return nil, fmt.Errorf("config.order: expected sorted or as-it-comes, got %q", order)
	}
}

func respond(order func(map[string]*structpb.Struct) []string, options proto.MarshalOptions) ([]byte, error) {
	resources := compose()
	var state []byte
	for _, name := range order(resources) {
		object, err := options.Marshal(resources[name])
		if err != nil {
			return nil, err
		}
		entry := message(entryKey, []byte(name))
		entry = append(entry, message(entryValue, message(resourceObject, object))...)
		state = append(state, message(stateResources, entry)...)
	}
	return message(responseDesired, state), nil
}

// compose returns objects by name; those have labels, annotations and data.
func compose() map[string]*structpb.Struct {
	resources := map[string]*structpb.Struct{}
	for i := range resourceCount {
		name := fmt.Sprintf("config-%d", i)
		resources[name] = &structpb.Struct{Fields: map[string]*structpb.Value{
			"apiVersion": structpb.NewStringValue("v1"),
			"kind":       structpb.NewStringValue("ConfigMap"),
			"metadata": object(map[string]*structpb.Value{
				"labels":      texts("label", 10),
				"annotations": texts("annotation", 10),
			}),
			"data": texts(name, 20),
		}}
	}
	return resources
}

func object(fields map[string]*structpb.Value) *structpb.Value {
	return structpb.NewStructValue(&structpb.Struct{Fields: fields})
}

func texts(prefix string, count int) *structpb.Value {
	fields := map[string]*structpb.Value{}
	for i := range count {
		fields[fmt.Sprintf("%s-%d", prefix, i)] = structpb.NewStringValue(fmt.Sprint(i))
	}
	return object(fields)
}

func names(resources map[string]*structpb.Struct) []string {
	return slices.Collect(maps.Keys(resources))
}

func sortedNames(resources map[string]*structpb.Struct) []string {
	return slices.Sorted(maps.Keys(resources))
}

// fieldOf returns what the pieces of a message field hold together.
func fieldOf(bytes []byte, wanted protowire.Number) []byte {
	var found []byte
	for len(bytes) > 0 {
		number, kind, tagSize := protowire.ConsumeTag(bytes)
		size := protowire.ConsumeFieldValue(number, kind, bytes[max(tagSize, 0):])
		if tagSize < 0 || size < 0 {
			panic("the request is no protobuf message")
		}
		if number == wanted && kind == protowire.BytesType {
			piece, _ := protowire.ConsumeBytes(bytes[tagSize:])
			found = append(found, piece...)
		}
		bytes = bytes[tagSize+size:]
	}
	return found
}

func message(number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
}
