// Greeter in C, compiled to a WebAssembly module of about 20 KB (guest ABI v1).
//
// A request is read and a response written field by field, so whatever this program does not know,
// such as fields of a newer Crossplane, is passed on byte for byte.
#include "object.h"
#include "wire.h"

// Field numbers of apiextensions.fn.proto.v1 (proto/run_function.proto).
enum { REQUEST_META = 1, REQUEST_OBSERVED, REQUEST_DESIRED, REQUEST_INPUT, REQUEST_CONTEXT };
enum { RESPONSE_META = 1, RESPONSE_DESIRED, RESPONSE_RESULTS, RESPONSE_CONTEXT };
enum { META_TAG = 1, META_TTL = 2, DURATION_SECONDS = 1 };
enum { STATE_COMPOSITE = 1, STATE_RESOURCES = 2, ENTRY_KEY = 1, ENTRY_VALUE = 2 };
enum { RESOURCE_OBJECT = 1, RESOURCE_READY = 3, READY_TRUE = 1 };
enum { RESULT_SEVERITY = 1, RESULT_MESSAGE = 2, SEVERITY_FATAL = 1 };

// How long Crossplane may reuse the answer to an identical request.
enum { TTL_SECONDS = 60 };

// What a Composition may set under the Input's config field.
struct config {
    struct bytes greeting;
    struct bytes labels; // an object whose values are strings
};

// The text of a fatal result; empty while all is well.
typedef struct writer problem;

static void complain(problem *problem, struct bytes path, const char *want, enum kind got) {
    write_raw(problem, path);
    write_raw(problem, text(": expected "));
    write_raw(problem, text(want));
    write_raw(problem, text(", got "));
    write_raw(problem, text(kind_name(got)));
}

static struct bytes config_object(struct bytes value, const char *path, problem *problem) {
    enum kind kind = kind_of(value);
    if (kind != KIND_OBJECT && kind != KIND_NULL) complain(problem, text(path), "an object", kind);
    return as_object(value);
}

// Reads input.config; what is absent or null keeps its default.
static struct config parse_config(struct bytes input, problem *problem) {
    struct config config = {.greeting = text("hello")};

    struct bytes fields = config_object(member(input, text("config")), "config", problem);
    if (problem->size > 0) return config;

    struct bytes greeting = member(fields, text("greeting"));
    enum kind kind = kind_of(greeting);
    if (kind == KIND_STRING) config.greeting = as_string(greeting);
    if (kind != KIND_STRING && kind != KIND_NULL) {
        complain(problem, text("config.greeting"), "a string", kind);
        return config;
    }

    struct bytes labels = config_object(member(fields, text("labels")), "config.labels", problem);
    struct bytes rest = labels;
    struct field field;
    while (problem->size == 0 && next_field(&rest, &field)) {
        if (field.number != OBJECT_MEMBERS) continue;
        struct bytes name = last_field(field.payload, ENTRY_KEY);
        kind = kind_of(member(labels, name));
        if (kind == KIND_STRING) continue;
        struct writer path = {0};
        write_raw(&path, text("config.labels."));
        write_raw(&path, name);
        complain(problem, written(&path), "a string", kind);
    }
    config.labels = with_member(labels, text("app.kubernetes.io/managed-by"),
                                string_value(text("function-wasm")));
    return config;
}

// Sets labels under metadata.labels of a Kubernetes object.
static struct bytes labelled(struct bytes object, struct bytes labels) {
    struct bytes metadata = as_object(member(object, text("metadata")));
    struct bytes merged = as_object(member(metadata, text("labels")));

    struct bytes rest = labels;
    struct field field;
    while (next_field(&rest, &field)) {
        if (field.number != OBJECT_MEMBERS) continue;
        struct bytes name = last_field(field.payload, ENTRY_KEY);
        merged = with_member(merged, name, member(labels, name));
    }

    metadata = with_member(metadata, text("labels"), object_value(merged));
    return with_member(object, text("metadata"), object_value(metadata));
}

// The ConfigMap, ready as soon as it exists.
static struct bytes greet(struct config config, struct bytes name) {
    struct writer greeting = {0};
    write_raw(&greeting, config.greeting);
    write_raw(&greeting, text(", "));
    write_raw(&greeting, name);

    struct bytes data = with_member((struct bytes){0}, text("greeting"), string_value(written(&greeting)));
    struct bytes object = with_member((struct bytes){0}, text("apiVersion"), string_value(text("v1")));
    object = with_member(object, text("kind"), string_value(text("ConfigMap")));
    object = with_member(object, text("data"), object_value(data));

    struct writer resource = {0};
    write_bytes(&resource, RESOURCE_OBJECT, labelled(object, config.labels));
    write_number(&resource, RESOURCE_READY, READY_TRUE);
    return written(&resource);
}

// A copy of the desired state in which every resource carries the labels, without `greeting`.
static void write_labelled_state(struct writer *w, struct bytes desired, struct bytes labels) {
    struct field field;
    while (next_field(&desired, &field)) {
        if (field.number != STATE_RESOURCES) {
            write_raw(w, field.whole);
            continue;
        }
        struct bytes key = last_field(field.payload, ENTRY_KEY);
        if (equal(key, text("greeting"))) continue;

        struct bytes resource = merged_field(field.payload, ENTRY_VALUE);
        struct bytes object = merged_field(resource, RESOURCE_OBJECT);
        struct writer copy = {0};
        write_bytes(&copy, RESOURCE_OBJECT, labelled(object, labels));
        struct field part;
        while (next_field(&resource, &part)) {
            if (part.number != RESOURCE_OBJECT) write_raw(&copy, part.whole);
        }
        write_entry(w, STATE_RESOURCES, key, written(&copy));
    }
}

// observed.composite.resource.metadata.name
static struct bytes composite_name(struct bytes observed, problem *problem) {
    struct bytes composite = merged_field(observed, STATE_COMPOSITE);
    struct bytes object = merged_field(composite, RESOURCE_OBJECT);
    struct bytes metadata = as_object(member(object, text("metadata")));
    struct bytes name = as_string(member(metadata, text("name")));
    if (name.size == 0 && problem->size == 0) {
        write_raw(problem, text("the observed composite resource has no metadata.name"));
    }
    return name;
}

// --- the host's log

__attribute__((import_module("wasmfn"), import_name("log"))) void
host_log(uint32_t level, const uint8_t *line, size_t size);

enum { LEVEL_INFO = 0 };

static void write_json_string(struct writer *w, struct bytes string) {
    static const char hex[] = "0123456789abcdef";
    write_raw(w, text("\""));
    for (size_t i = 0; i < string.size; i++) {
        uint8_t c = string.data[i];
        char escape[] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
        bool special = c < 0x20 || c == '"' || c == '\\';
        write_raw(w, special ? (struct bytes){(const uint8_t *)escape, sizeof escape}
                             : (struct bytes){&string.data[i], 1});
    }
    write_raw(w, text("\""));
}

static void log_greeted(struct bytes name) {
    struct writer line = {0};
    write_raw(&line, text("{\"msg\":\"greeted\",\"kv\":{\"composite\":"));
    write_json_string(&line, name);
    write_raw(&line, text("}}"));
    host_log(LEVEL_INFO, line.data, line.size);
}

// --- guest ABI v1

// The host asks for room and writes the request there.
__attribute__((export_name("wasmfn_alloc"))) void *wasmfn_alloc(size_t size) {
    return allocate(size);
}

// RunFunctionRequest in, RunFunctionResponse out, as address << 32 | size.
__attribute__((export_name("wasmfn_run"))) uint64_t wasmfn_run(const uint8_t *data, size_t size) {
    struct bytes request = {data, size};
    struct bytes desired = merged_field(request, REQUEST_DESIRED);

    problem problem = {0};
    struct config config = parse_config(merged_field(request, REQUEST_INPUT), &problem);
    struct bytes name = composite_name(merged_field(request, REQUEST_OBSERVED), &problem);

    struct writer ttl = {0};
    write_number(&ttl, DURATION_SECONDS, TTL_SECONDS);
    struct writer meta = {0};
    write_bytes(&meta, META_TAG, last_field(merged_field(request, REQUEST_META), META_TAG));
    write_bytes(&meta, META_TTL, written(&ttl));

    struct writer response = {0};
    write_bytes(&response, RESPONSE_META, written(&meta));
    if (problem.size > 0) {
        // Fatal stops the pipeline; what was desired before goes back unchanged.
        struct writer result = {0};
        write_number(&result, RESULT_SEVERITY, SEVERITY_FATAL);
        write_bytes(&result, RESULT_MESSAGE, written(&problem));
        write_bytes(&response, RESPONSE_DESIRED, desired);
        write_bytes(&response, RESPONSE_RESULTS, written(&result));
    } else {
        struct writer state = {0};
        write_labelled_state(&state, desired, config.labels);
        write_entry(&state, STATE_RESOURCES, text("greeting"), greet(config, name));
        write_bytes(&response, RESPONSE_DESIRED, written(&state));
        log_greeted(name);
    }
    if (has_field(request, REQUEST_CONTEXT)) {
        write_bytes(&response, RESPONSE_CONTEXT, merged_field(request, REQUEST_CONTEXT));
    }
    return (uint64_t)(uintptr_t)response.data << 32 | response.size;
}
