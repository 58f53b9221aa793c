package epochs

import (
	"context"
	"io"
	"time"

	"pitchpipe/test/workloads/team"
)

// Exit statuses of a workload.
const (
	ExitDone       = 0
	ExitFailed     = 1   // the work failed, or was told to
	ExitUsage      = 2   // a flag, a variable or the checkpoint is not usable
	ExitSaved      = 85  // saved after SIGUSR1: start it again and it goes on
	ExitTerminated = 143 // saved after SIGTERM
)

// Work is a program that runs in epochs. It is used by one goroutine. Where it is
// an io.Closer as well, it is closed when the run ends.
type Work interface {
	// Epoch does epoch n, counted from 1. It is called once for each n, in order.
	Epoch(ctx context.Context, n int) (Result, error)

	// Save writes everything that the coming epochs depend on and that New cannot
	// make again.
	Save(w io.Writer) error

	// Load reads what Save wrote into a work made by New with the same Params.
	Load(r io.Reader) error
}

// Result is what an epoch reached.
type Result struct {
	Loss float64 // lower is better
	Acc  float64 // between 0 and 1, higher is better
}

// Kind is a sort of work.
type Kind struct {
	Name    string
	Summary string // one line for the usage text
	New     func(Params) (Work, error)
}

// Params is what a piece of work is made from. Equal Params, threads and batch
// size included, give equal results; threads alone never change them.
type Params struct {
	Input       int           // which input, from 1: another number is other data of another size
	Seed        uint64        // of everything random
	Scale       float64       // of the amount of work per epoch, 1 = about half a second on one core
	Epochs      int           // planned in all
	Batch       int           // examples per update, where the work learns in batches
	Team        *team.Team    // the threads to use
	Dir         string        // where to put files
	EpochLength time.Duration // of work that only waits
	Journal     string        // file to note finished epochs in, for work that only waits; empty = none
}

// Size scales a default size to the input: inputs 1 to 5 are 1, 1.25, 0.8, 1.1
// and 0.9 times it, then it begins again. It returns at least least.
func (p Params) Size(def, least int) int {
	share := [...]float64{1, 1.25, 0.8, 1.1, 0.9}[(max(p.Input, 1)-1)%5]
	return max(int(float64(def)*share*p.Scale), least)
}

// Stream mixes the seed, the input and a number of the caller's choice into the
// seed of one random stream.
func (p Params) Stream(n uint64) (seed1, seed2 uint64) {
	return mix(p.Seed ^ mix(uint64(p.Input))), mix(n + 0x51_7c_c1_b7_27_22_0a_95)
}

// Mix folds one more value into a digest.
func Mix(digest, v uint64) uint64 { return mix(digest ^ mix(v)) }

// mix is the finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
