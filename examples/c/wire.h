// Protobuf's wire format: just enough to take messages apart and put them together.
//
// Nothing is ever freed: every run starts in a fresh instance whose memory goes away with it.
#ifndef GREETER_WIRE_H
#define GREETER_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A piece of memory that somebody else owns.
struct bytes {
    const uint8_t *data;
    size_t size;
};

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_LENGTH = 2, WIRE_FIXED32 = 5 };

struct field {
    uint32_t number;
    enum wire_type type;
    struct bytes payload; // content of a length-delimited field, empty for the others
    struct bytes whole;   // the field with its tag
};

// Builds a message; start with {0}.
struct writer {
    uint8_t *data;
    size_t size;
    size_t capacity;
};

// Stops the run: says why on standard error, then traps.
_Noreturn void fail(const char *reason);

void *allocate(size_t size);
struct bytes text(const char *literal);
bool equal(struct bytes a, struct bytes b);

// Takes the next field off the front of a message; false at its end, fail() when malformed.
bool next_field(struct bytes *message, struct field *field);

bool has_field(struct bytes message, uint32_t number);
// A string or bytes field, whose last occurrence counts.
struct bytes last_field(struct bytes message, uint32_t number);
// A submessage field, whose occurrences merge.
struct bytes merged_field(struct bytes message, uint32_t number);

struct bytes written(const struct writer *w);
void write_raw(struct writer *w, struct bytes fields);
void write_number(struct writer *w, uint32_t number, uint64_t value);
void write_bytes(struct writer *w, uint32_t number, struct bytes content);
// One entry of a map field.
void write_entry(struct writer *w, uint32_t number, struct bytes key, struct bytes value);

#endif
