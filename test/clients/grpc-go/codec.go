package main

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	// Imported so that its init runs before ours, which replaces the codec it registers.
	_ "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// rawCodec passes bytes through. It takes the name of the default codec, so that the calls carry
// the content type of any grpc-go client.
type rawCodec struct{}

func init() { encoding.RegisterCodecV2(rawCodec{}) }

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("expected *[]byte, got %T", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(*b)}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("expected *[]byte, got %T", v)
	}
	*b = data.Materialize()
	return nil
}
