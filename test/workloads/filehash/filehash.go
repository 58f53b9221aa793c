package filehash

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"

	"golang.org/x/sys/unix"

	"pitchpipe/test/workloads/epochs"
	"pitchpipe/test/workloads/team"
)

const (
	fileSize = 32 << 20
	passes   = 80      // per epoch
	block    = 8 << 10 // per read
	pieces   = 32
	cold     = 8 // each pass finds one part in so many out of the page cache
)

// Kind is the entry of this work in the list of kinds.
func Kind() epochs.Kind {
	return epochs.Kind{
		Name:    "hash",
		Summary: "read and hash a file that it made itself",
		New:     func(p epochs.Params) (epochs.Work, error) { return New(p) },
	}
}

// Reader is the file and the checksums that it was written with.
type Reader struct {
	params epochs.Params
	file   *os.File
	blocks int
	sums   []uint32
	table  *crc32.Table
	digest uint64 // of all that was read so far
}

// New writes the file.
func New(p epochs.Params) (*Reader, error) {
	f, err := os.CreateTemp(p.Dir, "workload-hash-*")
	if err != nil {
		return nil, fmt.Errorf("create the file to read: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("take the file's name away: %w", err), f.Close())
	}
	r := &Reader{params: p, file: f, blocks: p.Size(fileSize/block, pieces), table: crc32.MakeTable(crc32.Castagnoli)}
	r.sums = make([]uint32, r.blocks)
	if err := r.write(); err != nil {
		return nil, errors.Join(fmt.Errorf("write the file to read: %w", err), f.Close())
	}
	return r, nil
}

func (r *Reader) write() error {
	errs := make([]error, pieces)
	r.params.Team.Each(pieces, func(piece int) {
		rng := rand.NewPCG(r.params.Stream(uint64(piece)))
		buf := make([]byte, block)
		lo, hi := team.Span(r.blocks, pieces, piece)
		for i := lo; i < hi && errs[piece] == nil; i++ {
			for k := 0; k < block; k += 8 {
				binary.LittleEndian.PutUint64(buf[k:], rng.Uint64())
			}
			r.sums[i] = crc32.Checksum(buf, r.table)
			_, errs[piece] = r.file.WriteAt(buf, int64(i)*block)
		}
	})
	return errors.Join(append(errs, r.file.Sync())...)
}

// Epoch reads the file so many times.
func (r *Reader) Epoch(_ context.Context, n int) (epochs.Result, error) {
	wrong := 0
	for pass := range passes {
		if err := r.cool((n*passes + pass) % cold); err != nil {
			return epochs.Result{}, err
		}
		bad, err := r.pass()
		if err != nil {
			return epochs.Result{}, err
		}
		wrong += bad
	}
	share := float64(wrong) / float64(passes*r.blocks)
	return epochs.Result{Loss: share, Acc: 1 - share}, nil
}

// cool drops one part of the file from the page cache.
func (r *Reader) cool(part int) error {
	lo, hi := team.Span(r.blocks, cold, part)
	err := unix.Fadvise(int(r.file.Fd()), int64(lo)*block, int64(hi-lo)*block, unix.FADV_DONTNEED)
	if err != nil {
		return fmt.Errorf("drop a part of the file from the cache: %w", err)
	}
	return nil
}

// pass reads every block once and returns how many were not as written.
func (r *Reader) pass() (wrong int, err error) {
	errs := make([]error, pieces)
	bad := make([]int, pieces)
	sums := make([]uint32, pieces)
	r.params.Team.Each(pieces, func(piece int) {
		buf := make([]byte, block)
		lo, hi := team.Span(r.blocks, pieces, piece)
		for i := lo; i < hi; i++ {
			if _, errs[piece] = r.file.ReadAt(buf, int64(i)*block); errs[piece] != nil {
				return
			}
			sum := crc32.Checksum(buf, r.table)
			if sum != r.sums[i] {
				bad[piece]++
			}
			sums[piece] = sums[piece]<<1 ^ sums[piece]>>31 ^ sum
		}
	})
	if err := errors.Join(errs...); err != nil {
		return 0, fmt.Errorf("read the file: %w", err)
	}
	for piece := range pieces {
		wrong += bad[piece]
		r.digest = epochs.Mix(r.digest, uint64(sums[piece]))
	}
	return wrong, nil
}

// Close gives the file back.
func (r *Reader) Close() error { return r.file.Close() }

// Save writes the digest; the file is made again from the seed.
func (r *Reader) Save(w io.Writer) error { return binary.Write(w, binary.LittleEndian, r.digest) }

// Load reads what Save wrote.
func (r *Reader) Load(rd io.Reader) error {
	if err := binary.Read(rd, binary.LittleEndian, &r.digest); err != nil {
		return fmt.Errorf("read digest: %w", err)
	}
	return nil
}
