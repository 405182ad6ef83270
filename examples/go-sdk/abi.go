package main

import (
	"encoding/json"
	"unsafe"
)

// Guest ABI v1: the host calls wasmfn_alloc for room, writes the request there, then calls
// wasmfn_run, which answers with the place of the response in memory.

// pinned keeps what the host reads or writes from being collected. Every run starts in a fresh
// instance, so nothing is ever given back.
var pinned [][]byte

//go:wasmexport wasmfn_alloc
func wasmfnAlloc(size uint32) unsafe.Pointer {
	buffer := make([]byte, max(size, 1))
	pinned = append(pinned, buffer)
	return unsafe.Pointer(unsafe.SliceData(buffer))
}

//go:wasmexport wasmfn_run
func wasmfnRun(request unsafe.Pointer, size uint32) uint64 {
	response, err := handle(unsafe.Slice((*byte)(request), size))
	if err != nil {
		// There is no response to carry the reason, so trap; the host shows the panic's text.
		panic(err)
	}
	if len(response) == 0 {
		return 0
	}
	pinned = append(pinned, response)
	address := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(response))))
	return address<<32 | uint64(len(response))
}

// levelInfo is the host's level for lines worth keeping; 1 is debug.
const levelInfo = 0

//go:wasmimport wasmfn log
func wasmfnLog(level uint32, line unsafe.Pointer, size uint32)

// log hands one structured line to the host.
func log(level uint32, message string, fields map[string]string) {
	line, err := json.Marshal(map[string]any{"msg": message, "kv": fields})
	if err != nil {
		return
	}
	wasmfnLog(level, unsafe.Pointer(unsafe.SliceData(line)), uint32(len(line)))
}
