package main

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// field is one field of a message as it stands on the wire.
type field struct {
	number protowire.Number
	// payload is the content of a length-delimited field, nil for every other kind.
	payload []byte
	// whole is the field with its tag.
	whole []byte
}

// message is the fields of a protobuf message in wire order.
type message []field

// mapEntry is one entry of a map field.
type mapEntry struct {
	key   string
	value []byte
}

// parse splits a message into its fields.
func parse(bytes []byte) (message, error) {
	var fields message
	for len(bytes) > 0 {
		number, kind, tagSize := protowire.ConsumeTag(bytes)
		if tagSize < 0 {
			return nil, fmt.Errorf("malformed protobuf: %w", protowire.ParseError(tagSize))
		}
		size := protowire.ConsumeFieldValue(number, kind, bytes[tagSize:])
		if size < 0 {
			return nil, fmt.Errorf("malformed protobuf: %w", protowire.ParseError(size))
		}
		found := field{number: number, whole: bytes[:tagSize+size]}
		if kind == protowire.BytesType {
			found.payload, _ = protowire.ConsumeBytes(bytes[tagSize:])
		}
		fields = append(fields, found)
		bytes = bytes[tagSize+size:]
	}
	return fields, nil
}

func (m message) has(number protowire.Number) bool {
	for _, f := range m {
		if f.number == number {
			return true
		}
	}
	return false
}

// bytes returns the content of a submessage field. Repeated occurrences of a submessage merge, and
// to join their bytes is to merge them.
func (m message) bytes(number protowire.Number) []byte {
	var joined []byte
	for _, f := range m {
		if f.number == number {
			joined = append(joined, f.payload...)
		}
	}
	return joined
}

// last returns the content of a string or bytes field, whose last occurrence counts.
func (m message) last(number protowire.Number) []byte {
	var content []byte
	for _, f := range m {
		if f.number == number {
			content = f.payload
		}
	}
	return content
}

// without returns every field but one, as they stood on the wire.
func (m message) without(number protowire.Number) []byte {
	var rest []byte
	for _, f := range m {
		if f.number != number {
			rest = append(rest, f.whole...)
		}
	}
	return rest
}

// entries returns the entries of a map field; for a key that occurs again, the last one counts.
func (m message) entries(number protowire.Number) ([]mapEntry, error) {
	var entries []mapEntry
	at := map[string]int{}
	for _, f := range m {
		if f.number != number {
			continue
		}
		pair, err := parse(f.payload)
		if err != nil {
			return nil, err
		}
		entry := mapEntry{key: string(pair.last(1)), value: pair.bytes(2)}
		if i, seen := at[entry.key]; seen {
			entries[i] = entry
			continue
		}
		at[entry.key] = len(entries)
		entries = append(entries, entry)
	}
	return entries, nil
}

// writer builds a message.
type writer struct{ buffer []byte }

func (w *writer) raw(fields []byte) { w.buffer = append(w.buffer, fields...) }

func (w *writer) varint(number protowire.Number, value uint64) {
	w.buffer = protowire.AppendTag(w.buffer, number, protowire.VarintType)
	w.buffer = protowire.AppendVarint(w.buffer, value)
}

func (w *writer) bytes(number protowire.Number, content []byte) {
	w.buffer = protowire.AppendTag(w.buffer, number, protowire.BytesType)
	w.buffer = protowire.AppendBytes(w.buffer, content)
}

func (w *writer) message(number protowire.Number, fill func(*writer)) {
	var inner writer
	fill(&inner)
	w.bytes(number, inner.buffer)
}

func (w *writer) entry(number protowire.Number, key string, value []byte) {
	w.message(number, func(entry *writer) {
		entry.bytes(1, []byte(key))
		entry.bytes(2, value)
	})
}
