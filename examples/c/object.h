// google.protobuf.Struct and Value: the JSON inside the messages, still in its wire form.
#ifndef GREETER_OBJECT_H
#define GREETER_OBJECT_H

#include "wire.h"

// The fields of a Value; the number is also its kind. An absent value counts as null.
enum kind {
    KIND_NULL = 1,
    KIND_NUMBER = 2,
    KIND_STRING = 3,
    KIND_BOOLEAN = 4,
    KIND_OBJECT = 5,
    KIND_LIST = 6,
};

enum { OBJECT_MEMBERS = 1 }; // the map field of a Struct

enum kind kind_of(struct bytes value);
const char *kind_name(enum kind kind);

struct bytes string_value(struct bytes string);
struct bytes object_value(struct bytes object);

// The string in a value, or nothing when it holds something else.
struct bytes as_string(struct bytes value);
// The object in a value, or an empty one when it holds something else.
struct bytes as_object(struct bytes value);

// The value under a name, or an absent one.
struct bytes member(struct bytes object, struct bytes name);
// A copy of the object with one member set; everything else stays byte for byte.
struct bytes with_member(struct bytes object, struct bytes name, struct bytes value);

#endif
