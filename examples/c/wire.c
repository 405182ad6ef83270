#include "wire.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Noreturn void fail(const char *reason) {
    (void)!write(STDERR_FILENO, reason, strlen(reason));
    (void)!write(STDERR_FILENO, "\n", 1);
    __builtin_trap();
}

void *allocate(size_t size) {
    void *memory = malloc(size == 0 ? 1 : size);
    if (memory == NULL) fail("out of memory");
    return memory;
}

struct bytes text(const char *literal) {
    return (struct bytes){(const uint8_t *)literal, strlen(literal)};
}

bool equal(struct bytes a, struct bytes b) {
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

// --- reading

static struct bytes take(struct bytes *from, size_t size) {
    if (size > from->size) fail("malformed protobuf: a field ends behind its message");
    struct bytes taken = {from->data, size};
    from->data += size;
    from->size -= size;
    return taken;
}

static uint64_t take_varint(struct bytes *from) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = *take(from, 1).data;
        if (shift == 63 && byte > 1) break;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    fail("malformed protobuf: a varint is longer than 64 bits");
}

bool next_field(struct bytes *message, struct field *field) {
    if (message->size == 0) return false;
    const uint8_t *start = message->data;

    uint64_t tag = take_varint(message);
    if (tag >> 3 == 0 || tag >> 3 > 0x1fffffff) fail("malformed protobuf: bad field number");
    field->number = (uint32_t)(tag >> 3);
    field->type = (enum wire_type)(tag & 7);
    field->payload = (struct bytes){0};

    switch (field->type) {
    case WIRE_VARINT:
        take_varint(message);
        break;
    case WIRE_FIXED64:
        take(message, 8);
        break;
    case WIRE_FIXED32:
        take(message, 4);
        break;
    case WIRE_LENGTH: {
        uint64_t size = take_varint(message);
        if (size > message->size) fail("malformed protobuf: a field ends behind its message");
        field->payload = take(message, (size_t)size);
        break;
    }
    default: // groups, which proto3 does not have
        fail("malformed protobuf: unknown wire type");
    }
    field->whole = (struct bytes){start, (size_t)(message->data - start)};
    return true;
}

bool has_field(struct bytes message, uint32_t number) {
    struct field field;
    while (next_field(&message, &field)) {
        if (field.number == number) return true;
    }
    return false;
}

struct bytes last_field(struct bytes message, uint32_t number) {
    struct bytes found = {0};
    struct field field;
    while (next_field(&message, &field)) {
        if (field.number == number) found = field.payload;
    }
    return found;
}

struct bytes merged_field(struct bytes message, uint32_t number) {
    // To join the bytes of submessages is to merge them.
    struct writer joined = {0};
    struct bytes only = {0};
    unsigned count = 0;
    struct field field;
    while (next_field(&message, &field)) {
        if (field.number != number) continue;
        if (++count == 2) write_raw(&joined, only);
        if (count >= 2) write_raw(&joined, field.payload);
        only = field.payload;
    }
    return count < 2 ? only : written(&joined);
}

// --- writing

struct bytes written(const struct writer *w) {
    return (struct bytes){w->data, w->size};
}

void write_raw(struct writer *w, struct bytes fields) {
    if (fields.size == 0) return;
    if (fields.size > SIZE_MAX / 2 - w->size) fail("out of memory");
    size_t needed = w->size + fields.size;
    if (needed > w->capacity) {
        size_t capacity = needed * 2;
        uint8_t *grown = realloc(w->data, capacity);
        if (grown == NULL) fail("out of memory");
        w->data = grown;
        w->capacity = capacity;
    }
    memcpy(w->data + w->size, fields.data, fields.size);
    w->size = needed;
}

static void write_varint(struct writer *w, uint64_t value) {
    uint8_t digits[10];
    size_t count = 0;
    for (; value >= 0x80; value >>= 7) digits[count++] = (uint8_t)(value | 0x80);
    digits[count++] = (uint8_t)value;
    write_raw(w, (struct bytes){digits, count});
}

void write_number(struct writer *w, uint32_t number, uint64_t value) {
    write_varint(w, (uint64_t)number << 3 | WIRE_VARINT);
    write_varint(w, value);
}

void write_bytes(struct writer *w, uint32_t number, struct bytes content) {
    write_varint(w, (uint64_t)number << 3 | WIRE_LENGTH);
    write_varint(w, content.size);
    write_raw(w, content);
}

void write_entry(struct writer *w, uint32_t number, struct bytes key, struct bytes value) {
    struct writer entry = {0};
    write_bytes(&entry, 1, key);
    write_bytes(&entry, 2, value);
    write_bytes(w, number, written(&entry));
}
