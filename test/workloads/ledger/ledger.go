package ledger

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"sync"

	"pitchpipe/test/workloads/epochs"
	"pitchpipe/test/workloads/team"
)

const (
	accounts  = 60_000
	transfers = 4_400_000 // per epoch
	pieces    = 64
	opening   = 1_000_000 // of each account
)

// Kind is the entry of this work in the list of kinds.
func Kind() epochs.Kind {
	return epochs.Kind{
		Name:    "ledger",
		Summary: "book transfers between accounts, all under one lock",
		New:     func(p epochs.Params) (epochs.Work, error) { return New(p), nil },
	}
}

// Ledger is accounts by number, and the lock that whoever books must hold.
type Ledger struct {
	params  epochs.Params
	numbers []uint64 // of the accounts

	mu      sync.Mutex
	at      map[uint64]int // where an account is
	balance []int64
}

// New opens the accounts.
func New(p epochs.Params) *Ledger {
	n := p.Size(accounts, 50)
	l := &Ledger{params: p, at: make(map[uint64]int, n), balance: make([]int64, n)}
	rng := rand.New(rand.NewPCG(p.Stream(0)))
	for i := range l.balance {
		number := rng.Uint64()
		l.numbers = append(l.numbers, number)
		l.at[number], l.balance[i] = i, opening
	}
	return l
}

// Epoch books so many transfers.
func (l *Ledger) Epoch(_ context.Context, n int) (epochs.Result, error) {
	all := l.params.Size(transfers, pieces)
	l.params.Team.Each(pieces, func(piece int) {
		rng := rand.NewPCG(l.params.Stream(uint64(n)<<16 | uint64(piece) + 1))
		lo, hi := team.Span(all, pieces, piece)
		for range hi - lo {
			v := rng.Uint64()
			from, to := l.numbers[v%uint64(len(l.numbers))], l.numbers[v>>32%uint64(len(l.numbers))]
			l.book(from, to, int64(v>>60)+1)
		}
	})
	return l.audit(), nil
}

func (l *Ledger) book(from, to uint64, amount int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.balance[l.at[from]] -= amount
	l.balance[l.at[to]] += amount
}

func (l *Ledger) audit() epochs.Result {
	sum, squares := int64(0), 0.0
	for _, b := range l.balance {
		sum += b
		d := float64(b-opening) / opening
		squares += d * d
	}
	out := epochs.Result{Loss: math.Sqrt(squares / float64(len(l.balance)))}
	if sum == opening*int64(len(l.balance)) {
		out.Acc = 1
	}
	return out
}

// Save writes the balances.
func (l *Ledger) Save(w io.Writer) error { return binary.Write(w, binary.LittleEndian, l.balance) }

// Load reads what Save wrote.
func (l *Ledger) Load(r io.Reader) error {
	if err := binary.Read(r, binary.LittleEndian, l.balance); err != nil {
		return fmt.Errorf("read balances: %w", err)
	}
	return nil
}
