// Greeter, written with Crossplane's Go SDK and compiled to a WebAssembly module (guest ABI v1).
//
// The SDK brings the Kubernetes client libraries with it, so the module is large (about 77 MB) and
// takes most of a minute to compile. ../go-raw is the same function without the SDK.
package main

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/request"
	"github.com/crossplane/function-sdk-go/resource"
	"github.com/crossplane/function-sdk-go/resource/composed"
	"github.com/crossplane/function-sdk-go/response"
)

// main is required by -buildmode=c-shared and never called: the host calls the exports in abi.go.
func main() {}

// handle turns RunFunctionRequest bytes into RunFunctionResponse bytes.
func handle(request []byte) ([]byte, error) {
	req := &fnv1.RunFunctionRequest{}
	if err := proto.Unmarshal(request, req); err != nil {
		return nil, err
	}
	rsp, err := runFunction(context.Background(), req)
	if err != nil {
		return nil, err
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(rsp)
}

// runFunction has the signature of an SDK function, so the same code also runs as a gRPC server.
func runFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	rsp := response.To(req, response.DefaultTTL)

	cfg, err := parseConfig(req.GetInput())
	if err != nil {
		response.Fatal(rsp, err)
		return rsp, nil
	}
	xr, err := request.GetObservedCompositeResource(req)
	if err != nil {
		response.Fatal(rsp, err)
		return rsp, nil
	}

	name := xr.Resource.GetName()
	if name == "" {
		response.Fatal(rsp, errors.New("the observed composite resource has no metadata.name"))
		return rsp, nil
	}

	greeting, err := greet(cfg.greeting, name)
	if err != nil {
		response.Fatal(rsp, err)
		return rsp, nil
	}

	// rsp already holds everything that was desired. Labels are added in place: converting a
	// resource to another type and back would drop what that type does not know.
	if rsp.Desired == nil {
		rsp.Desired = &fnv1.State{}
	}
	if rsp.Desired.Resources == nil {
		rsp.Desired.Resources = map[string]*fnv1.Resource{}
	}
	rsp.Desired.Resources["greeting"] = greeting
	for _, desired := range rsp.GetDesired().GetResources() {
		addLabels(desired.GetResource(), cfg.labels)
	}

	log(levelInfo, "greeted", map[string]string{"composite": name})
	return rsp, nil
}

// greet returns the ConfigMap, ready as soon as it exists.
func greet(greeting, name string) (*fnv1.Resource, error) {
	cm := composed.New()
	cm.SetAPIVersion("v1")
	cm.SetKind("ConfigMap")
	if err := cm.SetString("data.greeting", greeting+", "+name); err != nil {
		return nil, err
	}
	object, err := resource.AsStruct(cm)
	if err != nil {
		return nil, err
	}
	return &fnv1.Resource{Resource: object, Ready: fnv1.Ready_READY_TRUE}, nil
}

// addLabels sets labels under metadata.labels of a Kubernetes object.
func addLabels(object *structpb.Struct, labels map[string]string) {
	target := child(child(object, "metadata"), "labels")
	for name, value := range labels {
		target.Fields[name] = structpb.NewStringValue(value)
	}
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
