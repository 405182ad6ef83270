#include "object.h"

enum { ENTRY_KEY = 1, ENTRY_VALUE = 2 };

enum kind kind_of(struct bytes value) {
    enum kind kind = KIND_NULL;
    struct field field;
    while (next_field(&value, &field)) {
        // The last member of a oneof counts.
        if (field.number >= KIND_NULL && field.number <= KIND_LIST) kind = (enum kind)field.number;
    }
    return kind;
}

const char *kind_name(enum kind kind) {
    switch (kind) {
    case KIND_NUMBER: return "number";
    case KIND_STRING: return "string";
    case KIND_BOOLEAN: return "boolean";
    case KIND_OBJECT: return "object";
    case KIND_LIST: return "list";
    default: return "null";
    }
}

struct bytes string_value(struct bytes string) {
    struct writer w = {0};
    write_bytes(&w, KIND_STRING, string);
    return written(&w);
}

struct bytes object_value(struct bytes object) {
    struct writer w = {0};
    write_bytes(&w, KIND_OBJECT, object);
    return written(&w);
}

struct bytes as_string(struct bytes value) {
    return kind_of(value) == KIND_STRING ? last_field(value, KIND_STRING) : (struct bytes){0};
}

struct bytes as_object(struct bytes value) {
    return kind_of(value) == KIND_OBJECT ? merged_field(value, KIND_OBJECT) : (struct bytes){0};
}

static bool is_member(const struct field *field, struct bytes name) {
    return field->number == OBJECT_MEMBERS && equal(last_field(field->payload, ENTRY_KEY), name);
}

struct bytes member(struct bytes object, struct bytes name) {
    struct bytes found = {0};
    struct field field;
    while (next_field(&object, &field)) {
        // The last entry with a key counts.
        if (is_member(&field, name)) found = merged_field(field.payload, ENTRY_VALUE);
    }
    return found;
}

struct bytes with_member(struct bytes object, struct bytes name, struct bytes value) {
    struct writer w = {0};
    struct field field;
    while (next_field(&object, &field)) {
        if (!is_member(&field, name)) write_raw(&w, field.whole);
    }
    write_entry(&w, OBJECT_MEMBERS, name, value);
    return written(&w);
}
