package checkpoint

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
)

// ErrCorrupt is returned for a file that is no checkpoint or not a whole one.
var ErrCorrupt = errors.New("not a whole checkpoint")

// Header says what the state belongs to. Threads and batch size are not in it: a
// run may go on under others.
type Header struct {
	Kind   string  `json:"kind"`
	Input  int     `json:"input"`
	Seed   uint64  `json:"seed"`
	Scale  float64 `json:"scale"`
	Epochs int     `json:"epochs"` // planned in all
	Done   int     `json:"done"`   // done so far
}

// Same tells whether both headers are of the same work, however far it got.
func (h Header) Same(o Header) bool {
	o.Done = h.Done
	return h == o
}

// The file is a line with the format's name, the header as one line of JSON, the
// body, and the CRC-32 (Castagnoli) of all that as four bytes, little endian.
const magic = "pitchpipe workload checkpoint 1\n"

const crcSize = 4

// Save writes the file beside its final name, forces it to the disk and renames
// it: at any moment path holds the old state or the new one, whole.
func Save(path string, h Header, body func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return fmt.Errorf("create checkpoint: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreClosed(f.Close()), os.Remove(f.Name()))
		}
	}()
	if err := write(f, h, body); err != nil {
		return fmt.Errorf("write checkpoint %s: %w", f.Name(), err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync checkpoint: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("close checkpoint: %w", err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("put checkpoint in place: %w", err)
	}
	return syncDir(filepath.Dir(path))
}

func write(f io.Writer, h Header, body func(io.Writer) error) error {
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	buf := bufio.NewWriterSize(io.MultiWriter(f, sum), 1<<16)
	line, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("header: %w", err)
	}
	if _, err := fmt.Fprintf(buf, "%s%s\n", magic, line); err != nil {
		return err
	}
	if err := body(buf); err != nil {
		return err
	}
	if err := buf.Flush(); err != nil {
		return err
	}
	_, err = f.Write(binary.LittleEndian.AppendUint32(nil, sum.Sum32()))
	return err
}

// Load reads a file that Save wrote and returns its header and body. A missing
// file is fs.ErrNotExist, a damaged one ErrCorrupt.
func Load(path string) (Header, io.Reader, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Header{}, nil, fmt.Errorf("read checkpoint: %w", err)
	}
	h, body, err := parse(data)
	if err != nil {
		return Header{}, nil, fmt.Errorf("%s: %w", path, err)
	}
	return h, body, nil
}

func parse(data []byte) (Header, io.Reader, error) {
	rest, ok := bytes.CutPrefix(data, []byte(magic))
	if !ok || len(rest) < crcSize {
		return Header{}, nil, fmt.Errorf("%w: it does not start as one", ErrCorrupt)
	}
	whole, want := data[:len(data)-crcSize], binary.LittleEndian.Uint32(data[len(data)-crcSize:])
	if got := crc32.Checksum(whole, crc32.MakeTable(crc32.Castagnoli)); got != want {
		return Header{}, nil, fmt.Errorf("%w: checksum %08x, want %08x", ErrCorrupt, got, want)
	}
	line, body, ok := bytes.Cut(rest[:len(rest)-crcSize], []byte("\n"))
	if !ok {
		return Header{}, nil, fmt.Errorf("%w: no header", ErrCorrupt)
	}
	var h Header
	if err := json.Unmarshal(line, &h); err != nil {
		return Header{}, nil, fmt.Errorf("%w: header: %w", ErrCorrupt, err)
	}
	return h, bytes.NewReader(body), nil
}

// syncDir makes the rename itself survive a power cut.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("open directory of checkpoint: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync directory of checkpoint: %w", err)
	}
	return nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
