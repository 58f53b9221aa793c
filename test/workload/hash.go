package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"

	"golang.org/x/sys/unix"
)

const (
	hashSize   = 32 << 20
	hashPasses = 80      // per epoch
	hashBlock  = 8 << 10 // per read
	hashPieces = 32
	hashCold   = 8 // each pass finds one part in so many out of the page cache
)

// hash reads a file without a name, through the kernel, and compares the checksums with
// those that it was written with.
type hash struct {
	digest

	params params
	file   *os.File
	blocks int
	sums   []uint32
}

func newHash(p params) (work, error) {
	f, err := os.CreateTemp(p.dir, "workload-hash-*")
	if err != nil {
		return nil, fmt.Errorf("create the file to read: %w", err)
	}
	h := &hash{params: p, file: f, blocks: p.size(hashSize/hashBlock, hashPieces)}
	h.sums = make([]uint32, h.blocks)
	err = errors.Join(os.Remove(f.Name()), h.each(func(piece int, buf []byte) func(at int64, block *uint32) error {
		rng := rand.NewPCG(p.stream(uint64(piece)))
		return func(at int64, sum *uint32) error {
			for k := 0; k < hashBlock; k += 8 {
				binary.LittleEndian.PutUint64(buf[k:], rng.Uint64())
			}
			*sum = checksum(buf)
			_, err := f.WriteAt(buf, at)
			return err
		}
	}), f.Sync())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write the file to read: %w", err), f.Close())
	}
	return h, nil
}

// each calls what make returns for every block of a piece, pieces at the same time.
func (h *hash) each(make func(piece int, buf []byte) func(at int64, sum *uint32) error) error {
	var errs [hashPieces]error
	h.params.team.each(hashPieces, func(piece int) {
		var buf [hashBlock]byte
		f := make(piece, buf[:])
		lo, hi := span(h.blocks, hashPieces, piece)
		for i := lo; i < hi && errs[piece] == nil; i++ {
			errs[piece] = f(int64(i)*hashBlock, &h.sums[i])
		}
	})
	return errors.Join(errs[:]...)
}

func (h *hash) epoch(_ context.Context, n int) (result, error) {
	wrong := 0
	for pass := range hashPasses {
		lo, hi := span(h.blocks, hashCold, (n*hashPasses+pass)%hashCold)
		if err := unix.Fadvise(int(h.file.Fd()), int64(lo)*hashBlock, int64(hi-lo)*hashBlock, unix.FADV_DONTNEED); err != nil {
			return result{}, fmt.Errorf("drop a part of the file from the cache: %w", err)
		}
		bad, err := h.pass()
		if err != nil {
			return result{}, err
		}
		wrong += bad
	}
	return right(wrong, hashPasses*h.blocks), nil
}

// pass reads every block once and returns how many differ from what was written.
func (h *hash) pass() (wrong int, err error) {
	var bad [hashPieces]int
	var sums [hashPieces]uint32
	err = h.each(func(piece int, buf []byte) func(int64, *uint32) error {
		return func(at int64, want *uint32) error {
			if _, err := h.file.ReadAt(buf, at); err != nil {
				return err
			}
			got := checksum(buf)
			if got != *want {
				bad[piece]++
			}
			sums[piece] = sums[piece]<<1 ^ sums[piece]>>31 ^ got
			return nil
		}
	})
	if err != nil {
		return 0, fmt.Errorf("read the file: %w", err)
	}
	for piece := range bad {
		wrong += bad[piece]
		h.mix(uint64(sums[piece]))
	}
	return wrong, nil
}

func (h *hash) Close() error { return h.file.Close() }
