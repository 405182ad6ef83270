module function-wasm/test/guests/go-maps

go 1.24

require google.golang.org/protobuf v1.36.12
