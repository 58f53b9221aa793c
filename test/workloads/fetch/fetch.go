package fetch

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"pitchpipe/test/workloads/epochs"
)

const (
	requests = 220 // per epoch
	stored   = 64  // blocks
	length   = 16 << 10
	delay    = 2 * time.Millisecond
)

// Kind is the entry of this work in the list of kinds.
func Kind() epochs.Kind {
	return epochs.Kind{
		Name:    "fetch",
		Summary: "read blocks from a store on the loopback that answers late",
		New:     func(p epochs.Params) (epochs.Work, error) { return New(p) },
	}
}

// Fetcher is a store, connections to it and the checksums of what it holds.
type Fetcher struct {
	params epochs.Params
	store  *store
	idle   chan net.Conn // one for each thread
	sums   []uint32
	length int
	digest uint64 // of all that was read so far
}

// New fills the store and connects to it. Other inputs have blocks of other lengths.
func New(p epochs.Params) (*Fetcher, error) {
	one := p
	one.Scale = 1
	f := &Fetcher{params: p, length: one.Size(length, 1), idle: make(chan net.Conn, p.Team.Threads())}
	rng := rand.NewPCG(p.Stream(0))
	blocks := make([][]byte, stored)
	for i := range blocks {
		blocks[i] = make([]byte, f.length)
		for k := 0; k+8 <= f.length; k += 8 {
			binary.LittleEndian.PutUint64(blocks[i][k:], rng.Uint64())
		}
		f.sums = append(f.sums, crc32.ChecksumIEEE(blocks[i]))
	}
	var err error
	if f.store, err = serve(blocks, delay); err != nil {
		return nil, err
	}
	for range p.Team.Threads() {
		c, err := f.store.dial()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("connect: %w", err), f.Close())
		}
		f.idle <- c
	}
	return f, nil
}

// Epoch makes so many requests.
func (f *Fetcher) Epoch(_ context.Context, n int) (epochs.Result, error) {
	count := f.params.Size(requests, 4)
	sums, errs := make([]uint32, count), make([]error, count)
	numbers := make([]uint64, count)
	rng := rand.NewPCG(f.params.Stream(uint64(n)))
	for i := range numbers {
		numbers[i] = rng.Uint64() % stored
	}
	f.params.Team.Each(count, func(i int) { sums[i], errs[i] = f.ask(numbers[i]) })
	if err := errors.Join(errs...); err != nil {
		return epochs.Result{}, fmt.Errorf("fetch: %w", err)
	}
	wrong := 0
	for i, s := range sums {
		if s != f.sums[numbers[i]] {
			wrong++
		}
		f.digest = epochs.Mix(f.digest, uint64(s))
	}
	share := float64(wrong) / float64(count)
	return epochs.Result{Loss: share, Acc: 1 - share}, nil
}

// ask reads one block and returns its checksum.
func (f *Fetcher) ask(number uint64) (uint32, error) {
	c := <-f.idle
	defer func() { f.idle <- c }()
	if err := binary.Write(c, binary.LittleEndian, number); err != nil {
		return 0, err
	}
	block := make([]byte, f.length)
	if _, err := io.ReadFull(c, block); err != nil {
		return 0, err
	}
	return crc32.ChecksumIEEE(block), nil
}

// Close ends the connections and the store.
func (f *Fetcher) Close() error {
	var errs []error
	for len(f.idle) > 0 {
		errs = append(errs, (<-f.idle).Close())
	}
	return errors.Join(append(errs, f.store.close())...)
}

// Save writes the digest; the store is filled again from the seed.
func (f *Fetcher) Save(w io.Writer) error { return binary.Write(w, binary.LittleEndian, f.digest) }

// Load reads what Save wrote.
func (f *Fetcher) Load(r io.Reader) error {
	if err := binary.Read(r, binary.LittleEndian, &f.digest); err != nil {
		return fmt.Errorf("read digest: %w", err)
	}
	return nil
}
