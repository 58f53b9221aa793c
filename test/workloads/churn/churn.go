package churn

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"pitchpipe/test/workloads/epochs"
)

const (
	trees  = 240    // per epoch
	length = 20_000 // keys of each
)

// Kind is the entry of this work in the list of kinds.
func Kind() epochs.Kind {
	return epochs.Kind{
		Name:    "churn",
		Summary: "grow and drop search trees, an allocation a key, garbage all the while",
		New:     func(p epochs.Params) (epochs.Work, error) { return New(p), nil },
	}
}

// Grower grows one lot of trees after the other.
type Grower struct {
	params epochs.Params
	digest uint64 // of all trees so far; the next ones are drawn from it
}

// New makes a grower.
func New(p epochs.Params) *Grower { return &Grower{params: p} }

// node is a key of a tree.
type node struct {
	key         uint64
	left, right *node
}

// grown is what is told of a tree.
type grown struct {
	ok    bool
	depth int
	sum   uint64
}

// Epoch grows so many trees.
func (g *Grower) Epoch(_ context.Context, n int) (epochs.Result, error) {
	keys := g.params.Size(length, 100)
	seed, _ := g.params.Stream(uint64(n))
	seed = epochs.Mix(g.digest, seed)
	all := make([]grown, trees)
	g.params.Team.Each(trees, func(i int) { all[i] = grow(rand.NewPCG(seed, uint64(i)), keys) })
	right, depth := 0, 0.0
	for _, one := range all {
		if one.ok {
			right++
		}
		depth += float64(one.depth) / trees
		g.digest = epochs.Mix(g.digest, one.sum)
	}
	return epochs.Result{Loss: depth/math.Log2(float64(keys)+1) - 1, Acc: float64(right) / trees}, nil
}

// grow makes a tree of n random keys and looks at it from the lowest to the highest.
func grow(rng *rand.PCG, n int) grown {
	var root *node
	var out grown
	for range n {
		at, depth := &root, 1
		for key := rng.Uint64(); ; depth++ {
			if *at == nil {
				*at = &node{key: key}
				break
			}
			if key < (*at).key {
				at = &(*at).left
			} else {
				at = &(*at).right
			}
		}
		out.depth = max(out.depth, depth)
	}
	count, last, ordered := 0, uint64(0), true
	walk(root, func(key uint64) {
		ordered = ordered && key >= last
		count++
		last, out.sum = key, out.sum*31+key
	})
	out.ok = ordered && count == n
	return out
}

func walk(n *node, visit func(uint64)) {
	if n == nil {
		return
	}
	walk(n.left, visit)
	visit(n.key)
	walk(n.right, visit)
}

// Save writes the digest.
func (g *Grower) Save(w io.Writer) error { return binary.Write(w, binary.LittleEndian, g.digest) }

// Load reads what Save wrote.
func (g *Grower) Load(r io.Reader) error {
	if err := binary.Read(r, binary.LittleEndian, &g.digest); err != nil {
		return fmt.Errorf("read digest: %w", err)
	}
	return nil
}
