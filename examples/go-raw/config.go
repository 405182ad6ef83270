package main

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/types/known/structpb"
)

// config is what a Composition may set under the Input's config field.
type config struct {
	greeting string
	labels   map[string]string
}

// parseConfig reads input.config; what is absent or null keeps its default.
func parseConfig(input *structpb.Struct) (config, error) {
	cfg := config{greeting: "hello", labels: map[string]string{}}

	fields, err := object(input.GetFields()["config"], "config")
	if err != nil {
		return cfg, err
	}
	if value := fields["greeting"]; kindOf(value) != "null" {
		if cfg.greeting, err = text(value, "config.greeting"); err != nil {
			return cfg, err
		}
	}
	labels, err := object(fields["labels"], "config.labels")
	if err != nil {
		return cfg, err
	}
	for _, name := range sortedKeys(labels) {
		if cfg.labels[name], err = text(labels[name], "config.labels."+name); err != nil {
			return cfg, err
		}
	}
	cfg.labels["app.kubernetes.io/managed-by"] = "function-wasm"
	return cfg, nil
}

func object(value *structpb.Value, path string) (map[string]*structpb.Value, error) {
	switch kind := kindOf(value); kind {
	case "null":
		return nil, nil
	case "object":
		return value.GetStructValue().GetFields(), nil
	default:
		return nil, fmt.Errorf("%s: expected an object, got %s", path, kind)
	}
}

func text(value *structpb.Value, path string) (string, error) {
	if kind := kindOf(value); kind != "string" {
		return "", fmt.Errorf("%s: expected a string, got %s", path, kind)
	}
	return value.GetStringValue(), nil
}

// kindOf names the JSON type of a value; an absent one counts as null.
func kindOf(value *structpb.Value) string {
	switch value.GetKind().(type) {
	case *structpb.Value_NumberValue:
		return "number"
	case *structpb.Value_StringValue:
		return "string"
	case *structpb.Value_BoolValue:
		return "boolean"
	case *structpb.Value_StructValue:
		return "object"
	case *structpb.Value_ListValue:
		return "list"
	default:
		return "null"
	}
}

func sortedKeys(fields map[string]*structpb.Value) []string {
	keys := make([]string, 0, len(fields))
	for key := range fields {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
