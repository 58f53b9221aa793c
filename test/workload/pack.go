package main

import (
	"bytes"
	"compress/flate"
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
)

const (
	packSize  = 9 << 20 // of the text
	packBlock = 32 << 10
	packWords = 4000
)

// pack compresses a text in one stream and expands it again: serial by nature.
type pack struct {
	digest

	blocks [][]byte // of the text
	sums   []uint32 // of the blocks
	size   int
	packed bytes.Buffer
	writer *flate.Writer
}

// newPack makes the text: words of a vocabulary, the first ones far more often.
func newPack(p params) (work, error) {
	w, err := flate.NewWriter(io.Discard, flate.DefaultCompression)
	if err != nil {
		return nil, fmt.Errorf("make the compressor: %w", err)
	}
	k := &pack{writer: w, size: p.size(packSize, packBlock)}
	rng := rand.New(rand.NewPCG(p.stream(0)))
	vocabulary := make([][]byte, packWords)
	for i := range vocabulary {
		word := make([]byte, 2+rng.IntN(9), 12)
		for j := range word {
			word[j] = byte('a' + rng.IntN(26))
		}
		vocabulary[i] = append(word, ' ')
	}
	text := make([]byte, 0, k.size+12)
	for len(text) < k.size {
		u := rng.Float64()
		text = append(text, vocabulary[int(u*u*u*packWords)]...)
	}
	for text = text[:k.size]; len(text) > 0; text = text[len(k.blocks[len(k.blocks)-1]):] {
		block := text[:min(packBlock, len(text))]
		k.blocks, k.sums = append(k.blocks, block), append(k.sums, crc32.ChecksumIEEE(block))
	}
	return k, nil
}

// epoch compresses the text twice, beginning elsewhere each time, and expands it again.
func (k *pack) epoch(_ context.Context, n int) (result, error) {
	good, small := 0, 0
	for pass := range 2 {
		first := (7*n + pass) % len(k.blocks)
		k.packed.Reset()
		k.writer.Reset(&k.packed)
		for i := range k.blocks {
			if _, err := k.writer.Write(k.blocks[(first+i)%len(k.blocks)]); err != nil {
				return result{}, fmt.Errorf("compress: %w", err)
			}
		}
		if err := k.writer.Close(); err != nil {
			return result{}, fmt.Errorf("compress: %w", err)
		}
		small += k.packed.Len()
		k.mix(uint64(crc32.ChecksumIEEE(k.packed.Bytes())))
		expanded := flate.NewReader(bytes.NewReader(k.packed.Bytes()))
		buf := make([]byte, packBlock)
		for i := range k.blocks {
			b := (first + i) % len(k.blocks)
			part := buf[:len(k.blocks[b])]
			if _, err := io.ReadFull(expanded, part); err != nil {
				return result{}, fmt.Errorf("expand: %w", err)
			}
			if crc32.ChecksumIEEE(part) == k.sums[b] {
				good++
			}
		}
	}
	return result{loss: float64(small) / float64(2*k.size), acc: float64(good) / float64(2*len(k.blocks))}, nil
}
