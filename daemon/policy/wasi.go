package policy

import (
	"encoding/binary"
	"math"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"
)

// wasiModule is the name under which toolchains import WASI.
const wasiModule = "wasi_snapshot_preview1"

// What WASI functions answer.
const (
	errnoSuccess      = 0
	errnoBadFile      = 8
	errnoFault        = 21
	errnoInvalid      = 28
	errnoNotSupported = 58
)

// wasiFunction is one of WASI that answers with an error number.
type wasiFunction struct {
	name   string
	params []api.ValueType
	call   func(w *world, memory api.Memory, s []uint64) uint32
}

// wasi returns the part of WASI that stock Go imports. Time and random numbers follow the question, what is printed is kept for
// the log, and nothing else is there: no file, no socket, no argument.
func wasi() []hostFunction {
	list := []hostFunction{{wasiModule, "proc_exit", taking(i32), exit}}
	for _, f := range append(livingWASI(), deadWASI()...) {
		list = append(list, hostFunction{wasiModule, f.name, returning(i32, f.params...), func(w *world, guest api.Module, s []uint64) {
			s = s[:max(len(s), 1)]
			s[0] = api.EncodeU32(f.call(w, guest.Memory(), s))
		}})
	}
	return list
}

// livingWASI are the functions that do something.
func livingWASI() []wasiFunction {
	return []wasiFunction{
		{"args_sizes_get", []api.ValueType{i32, i32}, func(_ *world, m api.Memory, s []uint64) uint32 {
			return wrote(writeU32(m, s[0], 0) && writeU32(m, s[1], 0))
		}},
		{"args_get", []api.ValueType{i32, i32}, func(*world, api.Memory, []uint64) uint32 { return errnoSuccess }},
		{"environ_sizes_get", []api.ValueType{i32, i32}, environSizes},
		{"environ_get", []api.ValueType{i32, i32}, environ},
		{"clock_time_get", []api.ValueType{i32, i64, i32}, clock},
		{"random_get", []api.ValueType{i32, i32}, random},
		{"fd_write", []api.ValueType{i32, i32, i32, i32}, fdWrite},
		{"poll_oneoff", []api.ValueType{i32, i32, i32, i32}, poll},
		{"sched_yield", nil, func(*world, api.Memory, []uint64) uint32 { return errnoSuccess }},
		// Go looks for folders that are open already until it hears that there is no such file; any other answer kills it.
		{"fd_prestat_get", []api.ValueType{i32, i32}, func(*world, api.Memory, []uint64) uint32 { return errnoBadFile }},
	}
}

// deadWASI are the functions that Go's runtime and library need in order to be linked, and that are not supported.
func deadWASI() []wasiFunction {
	dead := func(*world, api.Memory, []uint64) uint32 { return errnoNotSupported }
	return []wasiFunction{
		{"fd_close", []api.ValueType{i32}, dead},
		{"fd_fdstat_get", []api.ValueType{i32, i32}, dead},
		{"fd_fdstat_set_flags", []api.ValueType{i32, i32}, dead},
		{"fd_fdstat_set_rights", []api.ValueType{i32, i64, i64}, dead},
		{"fd_filestat_get", []api.ValueType{i32, i32}, dead},
		{"fd_filestat_set_size", []api.ValueType{i32, i64}, dead},
		{"fd_pread", []api.ValueType{i32, i32, i32, i64, i32}, dead},
		{"fd_prestat_dir_name", []api.ValueType{i32, i32, i32}, dead},
		{"fd_pwrite", []api.ValueType{i32, i32, i32, i64, i32}, dead},
		{"fd_read", []api.ValueType{i32, i32, i32, i32}, dead},
		{"fd_readdir", []api.ValueType{i32, i32, i32, i64, i32}, dead},
		{"fd_seek", []api.ValueType{i32, i64, i32, i32}, dead},
		{"fd_sync", []api.ValueType{i32}, dead},
		{"path_create_directory", []api.ValueType{i32, i32, i32}, dead},
		{"path_filestat_get", []api.ValueType{i32, i32, i32, i32, i32}, dead},
		{"path_filestat_set_times", []api.ValueType{i32, i32, i32, i32, i64, i64, i32}, dead},
		{"path_link", []api.ValueType{i32, i32, i32, i32, i32, i32, i32}, dead},
		{"path_open", []api.ValueType{i32, i32, i32, i32, i32, i64, i64, i32, i32}, dead},
		{"path_readlink", []api.ValueType{i32, i32, i32, i32, i32, i32}, dead},
		{"path_remove_directory", []api.ValueType{i32, i32, i32}, dead},
		{"path_rename", []api.ValueType{i32, i32, i32, i32, i32, i32}, dead},
		{"path_symlink", []api.ValueType{i32, i32, i32, i32, i32}, dead},
		{"path_unlink_file", []api.ValueType{i32, i32, i32}, dead},
		{"sock_accept", []api.ValueType{i32, i32, i32}, dead},
		{"sock_shutdown", []api.ValueType{i32, i32}, dead},
	}
}

// exit ends the instance, whatever the code: a policy has no reason to end.
func exit(_ *world, _ api.Module, s []uint64) {
	panic(sys.NewExitError(api.DecodeU32(s[0])))
}

func environSizes(w *world, m api.Memory, s []uint64) uint32 {
	size := 0
	for _, e := range w.env {
		size += len(e) + 1
	}
	return wrote(writeU32(m, s[0], uint32(len(w.env))) && writeU32(m, s[1], uint32(size)))
}

func environ(w *world, m api.Memory, s []uint64) uint32 {
	at, text := s[0], s[1]
	for _, e := range w.env {
		if !writeU32(m, at, uint32(text)) || !m.Write(api.DecodeU32(text), append([]byte(e), 0)) {
			return errnoFault
		}
		at += 4
		text += uint64(len(e)) + 1
	}
	return errnoSuccess
}

func clock(w *world, m api.Memory, s []uint64) uint32 {
	return wrote(m.WriteUint64Le(api.DecodeU32(s[2]), uint64(w.now(api.DecodeU32(s[0])))))
}

// random fills as much as is asked for, up to the memory's size, and pays for it.
func random(w *world, m api.Memory, s []uint64) uint32 {
	buffer, ok := m.Read(api.DecodeU32(s[0]), api.DecodeU32(s[1]))
	if !ok {
		return errnoFault
	}
	for len(buffer) > 0 {
		chunk := buffer[:min(len(buffer), pageSize)]
		buffer = buffer[len(chunk):]
		w.tank.charge(len(chunk))
		for len(chunk) > 0 {
			var eight [8]byte
			binary.LittleEndian.PutUint64(eight[:], w.random())
			chunk = chunk[copy(chunk, eight[:]):]
		}
	}
	return errnoSuccess
}

// fdWrite keeps what is printed. It always says that all was written: Go dies when it cannot print.
func fdWrite(w *world, m api.Memory, s []uint64) uint32 {
	if file := api.DecodeU32(s[0]); file != 1 && file != 2 {
		return errnoBadFile
	}
	vectors, ok := records(m, s[1], s[2], 8)
	if !ok {
		return errnoFault
	}
	total := uint64(0)
	for ; len(vectors) > 0; vectors = vectors[8:] {
		text, ok := m.Read(binary.LittleEndian.Uint32(vectors), binary.LittleEndian.Uint32(vectors[4:]))
		if !ok {
			return errnoFault
		}
		kept := text[:min(len(text), maxOutput)]
		w.tank.charge(len(kept))
		w.write(kept)
		total += uint64(len(text))
	}
	return wrote(writeU32(m, s[3], uint32(min(total, math.MaxUint32))))
}

// poll lets the time pass that is waited for, and says that it has. Standing still would make Go's scheduler spin for ever.
func poll(w *world, m api.Memory, s []uint64) uint32 {
	const subscription, event, absolute = 48, 32, 1
	in, inOK := records(m, s[0], s[2], subscription)
	out, outOK := records(m, s[1], s[2], event)
	switch {
	case !inOK || !outOK:
		return errnoFault
	case len(in) == 0:
		return errnoInvalid
	}
	count := uint32(0)
	w.tank.charge(len(in))
	for ; len(in) > 0; in = in[subscription:] {
		clear(out[:event])
		copy(out, in[:8])                // what the guest knows it by
		if out[10] = in[8]; in[8] == 0 { // a clock
			wait := binary.LittleEndian.Uint64(in[24:])
			if binary.LittleEndian.Uint16(in[40:])&absolute != 0 {
				wait -= min(wait, uint64(w.now(binary.LittleEndian.Uint32(in[16:]))))
			}
			w.sleep(wait)
		} else { // a file
			binary.LittleEndian.PutUint16(out[8:], errnoNotSupported)
		}
		out = out[event:]
		count++
	}
	return wrote(writeU32(m, s[3], count))
}

// records returns the bytes of an array in the guest's memory, at most maxOutput of them.
func records(m api.Memory, at, count, size uint64) ([]byte, bool) {
	total := uint64(api.DecodeU32(count)) * size
	if total > maxOutput {
		return nil, false
	}
	return m.Read(api.DecodeU32(at), uint32(total))
}

func writeU32(m api.Memory, at uint64, v uint32) bool { return m.WriteUint32Le(api.DecodeU32(at), v) }

func wrote(ok bool) uint32 {
	if ok {
		return errnoSuccess
	}
	return errnoFault
}
