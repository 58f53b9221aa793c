package spawn

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"

	"pitchpipe/test/workloads/epochs"
)

const (
	children = 300 // per epoch
	length   = 8 << 10
	program  = "cksum"
)

// Kind is the entry of this work in the list of kinds.
func Kind() epochs.Kind {
	return epochs.Kind{
		Name:    "spawn",
		Summary: "have a child process (cksum) do each bit of the work",
		New:     func(p epochs.Params) (epochs.Work, error) { return New(p) },
	}
}

// Spawner knows the program that its children run.
type Spawner struct {
	params epochs.Params
	path   string
	length int
	digest uint64 // of all answers so far; the next texts are drawn from it
}

// New looks for the program. Other inputs have texts of other lengths.
func New(p epochs.Params) (*Spawner, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, fmt.Errorf("find the program that children run: %w", err)
	}
	one := p
	one.Scale = 1
	return &Spawner{params: p, path: path, length: one.Size(length, 1)}, nil
}

// Epoch has so many children sum up a text each.
func (s *Spawner) Epoch(ctx context.Context, n int) (epochs.Result, error) {
	count := s.params.Size(children, 2)
	seed, _ := s.params.Stream(uint64(n))
	seed = epochs.Mix(s.digest, seed)
	sums, errs, good := make([]uint32, count), make([]error, count), make([]bool, count)
	s.params.Team.Each(count, func(i int) {
		text := draw(rand.NewPCG(seed, uint64(i)), s.length)
		sums[i], errs[i] = s.child(ctx, text)
		good[i] = sums[i] == checksum(text)
	})
	if err := errors.Join(errs...); err != nil {
		return epochs.Result{}, err
	}
	wrong := 0
	for i, sum := range sums {
		if !good[i] {
			wrong++
		}
		s.digest = epochs.Mix(s.digest, uint64(sum))
	}
	share := float64(wrong) / float64(count)
	return epochs.Result{Loss: share, Acc: 1 - share}, nil
}

func draw(rng *rand.PCG, n int) []byte {
	text := make([]byte, n)
	for k := 0; k+8 <= n; k += 8 {
		binary.LittleEndian.PutUint64(text[k:], rng.Uint64())
	}
	return text
}

// child asks one child process.
func (s *Spawner) child(ctx context.Context, text []byte) (uint32, error) {
	cmd := exec.CommandContext(ctx, s.path) //nolint:gosec // it is cksum, and its input is on the pipe
	cmd.Stdin = bytes.NewReader(text)
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("run %s: %w", s.path, err)
	}
	var sum uint32
	var size int
	if _, err := fmt.Sscan(string(out), &sum, &size); err != nil || size != len(text) {
		return 0, fmt.Errorf("%s said %q of %d bytes", s.path, out, len(text))
	}
	return sum, nil
}

// checksum is what POSIX has cksum print: a CRC with the polynomial 0x04C11DB7, most
// significant bit first, over the text and then over its length, lowest byte first.
func checksum(text []byte) uint32 {
	table := crcTable()
	crc := uint32(0)
	add := func(b byte) { crc = crc<<8 ^ table[byte(crc>>24)^b] }
	for _, b := range text {
		add(b)
	}
	for n := len(text); n > 0; n >>= 8 {
		add(byte(n))
	}
	return ^crc
}

func crcTable() (table [256]uint32) {
	for i := range table {
		crc := uint32(i) << 24
		for range 8 {
			carry := crc&(1<<31) != 0
			crc <<= 1
			if carry {
				crc ^= 0x04C11DB7
			}
		}
		table[i] = crc
	}
	return table
}

// Save writes the digest.
func (s *Spawner) Save(w io.Writer) error { return binary.Write(w, binary.LittleEndian, s.digest) }

// Load reads what Save wrote.
func (s *Spawner) Load(r io.Reader) error {
	if err := binary.Read(r, binary.LittleEndian, &s.digest); err != nil {
		return fmt.Errorf("read digest: %w", err)
	}
	return nil
}
