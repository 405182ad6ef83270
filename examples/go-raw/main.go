// Greeter, written against the wire format and compiled to a WebAssembly module (guest ABI v1).
//
// It needs only google.golang.org/protobuf. A request is read and a response written field by
// field, so whatever this program does not know, such as fields of a newer Crossplane, is passed
// on byte for byte.
package main

import (
	"errors"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// main is required by -buildmode=c-shared and never called: the host calls the exports in abi.go.
func main() {}

// Field numbers of apiextensions.fn.proto.v1 (proto/run_function.proto).
const (
	requestMeta     = 1
	requestObserved = 2
	requestDesired  = 3
	requestInput    = 4
	requestContext  = 5

	responseMeta    = 1
	responseDesired = 2
	responseResults = 3
	responseContext = 4

	metaTag = 1
	metaTTL = 2

	stateComposite = 1
	stateResources = 2

	resourceObject = 1
	resourceReady  = 3
	readyTrue      = 1

	resultSeverity = 1
	resultMessage  = 2
	severityFatal  = 1

	durationSeconds = 1
)

// ttlSeconds is how long Crossplane may reuse the answer to an identical request.
const ttlSeconds = 60

// handle turns RunFunctionRequest bytes into RunFunctionResponse bytes.
func handle(request []byte) ([]byte, error) {
	req, err := parse(request)
	if err != nil {
		return nil, err
	}

	desired, err := compose(req)
	fatal := err
	if fatal != nil {
		// Fatal stops the pipeline; what was desired before goes back unchanged.
		desired = req.bytes(requestDesired)
	}

	meta, err := parse(req.bytes(requestMeta))
	if err != nil {
		return nil, err
	}
	var rsp writer
	rsp.message(responseMeta, func(w *writer) {
		w.bytes(metaTag, meta.last(metaTag))
		w.message(metaTTL, func(w *writer) { w.varint(durationSeconds, ttlSeconds) })
	})
	rsp.bytes(responseDesired, desired)
	if fatal != nil {
		rsp.message(responseResults, func(w *writer) {
			w.varint(resultSeverity, severityFatal)
			w.bytes(resultMessage, []byte(fatal.Error()))
		})
	}
	if req.has(requestContext) {
		rsp.bytes(responseContext, req.bytes(requestContext))
	}
	return rsp.buffer, nil
}

// compose returns the desired state: everything asked for so far, labelled, and the greeting.
func compose(req message) ([]byte, error) {
	input := &structpb.Struct{}
	if err := proto.Unmarshal(req.bytes(requestInput), input); err != nil {
		return nil, err
	}
	cfg, err := parseConfig(input)
	if err != nil {
		return nil, err
	}
	name, err := compositeName(req.bytes(requestObserved))
	if err != nil {
		return nil, err
	}

	state, err := parse(req.bytes(requestDesired))
	if err != nil {
		return nil, err
	}
	resources, err := state.entries(stateResources)
	if err != nil {
		return nil, err
	}

	var out writer
	out.raw(state.without(stateResources))
	for _, entry := range resources {
		if entry.key == "greeting" {
			continue
		}
		labelled, err := label(entry.value, cfg.labels)
		if err != nil {
			return nil, err
		}
		out.entry(stateResources, entry.key, labelled)
	}
	greeting, err := label(greet(cfg.greeting, name), cfg.labels)
	if err != nil {
		return nil, err
	}
	out.entry(stateResources, "greeting", greeting)

	log(levelInfo, "greeted", map[string]string{"composite": name})
	return out.buffer, nil
}

// compositeName reads observed.composite.resource.metadata.name.
func compositeName(observed []byte) (string, error) {
	state, err := parse(observed)
	if err != nil {
		return "", err
	}
	composite, err := parse(state.bytes(stateComposite))
	if err != nil {
		return "", err
	}
	object := &structpb.Struct{}
	if err := proto.Unmarshal(composite.bytes(resourceObject), object); err != nil {
		return "", err
	}
	name := object.GetFields()["metadata"].GetStructValue().GetFields()["name"].GetStringValue()
	if name == "" {
		return "", errors.New("the observed composite resource has no metadata.name")
	}
	return name, nil
}

// greet returns the Resource message of the ConfigMap, ready as soon as it exists.
func greet(greeting, name string) []byte {
	object := &structpb.Struct{Fields: map[string]*structpb.Value{
		"apiVersion": structpb.NewStringValue("v1"),
		"kind":       structpb.NewStringValue("ConfigMap"),
		"data": structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
			"greeting": structpb.NewStringValue(greeting + ", " + name),
		}}),
	}}
	var out writer
	out.bytes(resourceObject, encode(object))
	out.varint(resourceReady, readyTrue)
	return out.buffer
}

// label sets labels under metadata.labels of the Kubernetes object in a Resource message.
func label(resource []byte, labels map[string]string) ([]byte, error) {
	fields, err := parse(resource)
	if err != nil {
		return nil, err
	}
	object := &structpb.Struct{}
	if err := proto.Unmarshal(fields.bytes(resourceObject), object); err != nil {
		return nil, err
	}
	target := child(child(object, "metadata"), "labels")
	for name, value := range labels {
		target.Fields[name] = structpb.NewStringValue(value)
	}

	var out writer
	out.bytes(resourceObject, encode(object))
	out.raw(fields.without(resourceObject))
	return out.buffer, nil
}

// child returns the object under name, making an empty one when there is none.
func child(parent *structpb.Struct, name string) *structpb.Struct {
	found := parent.GetFields()[name].GetStructValue()
	if found == nil {
		found = &structpb.Struct{}
		if parent.Fields == nil {
			parent.Fields = map[string]*structpb.Value{}
		}
		parent.Fields[name] = structpb.NewStructValue(found)
	}
	if found.Fields == nil {
		found.Fields = map[string]*structpb.Value{}
	}
	return found
}

// encode writes map entries in key order: equal requests must get equal answers, or Crossplane
// would see a change on every reconcile.
func encode(object *structpb.Struct) []byte {
	bytes, err := proto.MarshalOptions{Deterministic: true}.Marshal(object)
	if err != nil {
		panic(err) // Only text that is not UTF-8 can fail, and unmarshalling refuses that.
	}
	return bytes
}
