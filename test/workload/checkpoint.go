package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"slices"

	"pitchpipe/driver/durable"
)

// errCorrupt is returned for a file that is not a whole checkpoint.
var errCorrupt = errors.New("not a whole checkpoint")

// header says which work a state belongs to. Threads and batch size are not in it: a run
// may continue under others.
type header struct {
	Kind   string  `json:"kind"`
	Input  int     `json:"input"`
	Seed   uint64  `json:"seed"`
	Scale  float64 `json:"scale"`
	Epochs int     `json:"epochs"` // planned in all
	Done   int     `json:"done"`   // done so far
}

// The file is a line with the format's name, the header as one line of JSON, the state, and
// the CRC-32 (Castagnoli) of all that as four bytes, little endian.
const magic = "pitchpipe workload checkpoint 1\n"

func checksum(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

// save replaces the file by the state of the work: at any moment the path holds the old
// state or the new one, whole.
func save(path string, h header, w work) error {
	line, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("header of the checkpoint: %w", err)
	}
	state, err := stateOf(w)
	if err != nil {
		return fmt.Errorf("state of the checkpoint: %w", err)
	}
	data := slices.Concat([]byte(magic), line, []byte("\n"), state)
	if err := durable.Write(path, binary.LittleEndian.AppendUint32(data, checksum(data)), 0o600); err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	return nil
}

// load reads a file that save wrote into the work, and returns how many epochs are done. A
// missing file is fs.ErrNotExist, a damaged one errCorrupt, one of other work errUsage.
func load(path string, want header, w work) (done int, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("read checkpoint: %w", err)
	}
	h, body, err := parseCheckpoint(data)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	done, want.Done = h.Done, h.Done
	if h != want {
		return 0, fmt.Errorf("%w: checkpoint %s is of other work: %+v, want %+v", errUsage, path, h, want)
	}
	if err := restore(w, body); err != nil {
		return 0, fmt.Errorf("load checkpoint %s: %w", path, err)
	}
	return done, nil
}

func parseCheckpoint(data []byte) (h header, body []byte, err error) {
	rest, ok := bytes.CutPrefix(data, []byte(magic))
	if !ok || len(rest) < crc32.Size {
		return h, nil, fmt.Errorf("%w: it does not start as one", errCorrupt)
	}
	whole, want := data[:len(data)-crc32.Size], binary.LittleEndian.Uint32(data[len(data)-crc32.Size:])
	if got := checksum(whole); got != want {
		return h, nil, fmt.Errorf("%w: checksum %08x, want %08x", errCorrupt, got, want)
	}
	line, body, ok := bytes.Cut(rest[:len(rest)-crc32.Size], []byte("\n"))
	if !ok {
		return h, nil, fmt.Errorf("%w: no header", errCorrupt)
	}
	if err := json.Unmarshal(line, &h); err != nil {
		return h, nil, fmt.Errorf("%w: header: %w", errCorrupt, err)
	}
	return h, body, nil
}

// stateOf is the state of the work as bytes.
func stateOf(w work) ([]byte, error) {
	var b bytes.Buffer
	for _, part := range w.state() {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// restore reads a state into the work.
func restore(w work, state []byte) error {
	r := bytes.NewReader(state)
	for _, part := range w.state() {
		if err := binary.Read(r, binary.LittleEndian, part); err != nil {
			return err
		}
	}
	if w, ok := w.(interface{ restored() }); ok {
		w.restored()
	}
	return nil
}
