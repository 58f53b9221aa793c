package pack

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"

	"pitchpipe/test/workloads/epochs"
)

const (
	size  = 9 << 20 // of the text
	block = 32 << 10
	words = 4000
)

// Kind is the entry of this work in the list of kinds.
func Kind() epochs.Kind {
	return epochs.Kind{
		Name:    "pack",
		Summary: "compress and expand a text in one stream, on one thread whatever is allowed",
		New:     func(p epochs.Params) (epochs.Work, error) { return New(p) },
	}
}

// Packer is a text and what it is compressed with.
type Packer struct {
	text   []byte
	sums   []uint32 // of the blocks
	packed bytes.Buffer
	deflow *flate.Writer
	inflow io.Reader
	digest uint64 // of all that was written so far
}

// New makes the text: words of a vocabulary, the first ones far more often.
func New(p epochs.Params) (*Packer, error) {
	w, err := flate.NewWriter(io.Discard, flate.DefaultCompression)
	if err != nil {
		return nil, fmt.Errorf("make the compressor: %w", err)
	}
	k := &Packer{deflow: w, inflow: flate.NewReader(bytes.NewReader(nil))}
	k.text = write(rand.New(rand.NewPCG(p.Stream(0))), p.Size(size, block))
	for b := range k.blocks() {
		k.sums = append(k.sums, crc32.ChecksumIEEE(k.block(b)))
	}
	return k, nil
}

func write(rng *rand.Rand, n int) []byte {
	vocabulary := make([][]byte, words)
	for i := range vocabulary {
		w := make([]byte, 2+rng.IntN(9), 12)
		for j := range w {
			w[j] = byte('a' + rng.IntN(26))
		}
		vocabulary[i] = append(w, ' ')
	}
	text := make([]byte, 0, n+12)
	for len(text) < n {
		u := rng.Float64()
		text = append(text, vocabulary[int(u*u*u*words)]...)
	}
	return text[:n:n]
}

func (k *Packer) blocks() int { return (len(k.text) + block - 1) / block }

func (k *Packer) block(i int) []byte { return k.text[i*block : min((i+1)*block, len(k.text))] }

// Epoch compresses the text twice, beginning elsewhere each time, and expands it again.
func (k *Packer) Epoch(_ context.Context, n int) (epochs.Result, error) {
	right, small := 0, 0
	for pass := range 2 {
		first := (7*n + pass) % k.blocks()
		k.packed.Reset()
		k.deflow.Reset(&k.packed)
		for i := range k.blocks() {
			if _, err := k.deflow.Write(k.block((first + i) % k.blocks())); err != nil {
				return epochs.Result{}, fmt.Errorf("compress: %w", err)
			}
		}
		if err := k.deflow.Close(); err != nil {
			return epochs.Result{}, fmt.Errorf("compress: %w", err)
		}
		small += k.packed.Len()
		k.digest = epochs.Mix(k.digest, uint64(crc32.ChecksumIEEE(k.packed.Bytes())))
		good, err := k.expand(first)
		if err != nil {
			return epochs.Result{}, err
		}
		right += good
	}
	return epochs.Result{
		Loss: float64(small) / float64(2*len(k.text)),
		Acc:  float64(right) / float64(2*k.blocks()),
	}, nil
}

// expand returns how many blocks came back as they were.
func (k *Packer) expand(first int) (right int, err error) {
	r, ok := k.inflow.(flate.Resetter)
	if !ok {
		return 0, fmt.Errorf("expand: %T cannot be used again", k.inflow)
	}
	if err := r.Reset(bytes.NewReader(k.packed.Bytes()), nil); err != nil {
		return 0, fmt.Errorf("expand: %w", err)
	}
	buf := make([]byte, block)
	for i := range k.blocks() {
		b := (first + i) % k.blocks()
		part := buf[:len(k.block(b))]
		if _, err := io.ReadFull(k.inflow, part); err != nil {
			return right, fmt.Errorf("expand: %w", err)
		}
		if crc32.ChecksumIEEE(part) == k.sums[b] {
			right++
		}
	}
	return right, nil
}

// Save writes the digest.
func (k *Packer) Save(w io.Writer) error { return binary.Write(w, binary.LittleEndian, k.digest) }

// Load reads what Save wrote.
func (k *Packer) Load(r io.Reader) error {
	if err := binary.Read(r, binary.LittleEndian, &k.digest); err != nil {
		return fmt.Errorf("read digest: %w", err)
	}
	return nil
}
