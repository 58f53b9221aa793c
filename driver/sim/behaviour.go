package sim

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strconv"
	"time"
)

// Behaviour is what the #SIM lines of a job file say. The package documentation
// has the table of keys; a field is named after its key.
type Behaviour struct {
	Epochs        int
	Seconds       float64 // CPU seconds of one epoch's work at the base batch
	Parallel      float64 // Amdahl share, 0..1
	Threads       string  // environment variable with the number of threads
	Oversubscribe float64 // time added per thread beyond the cores, as a share
	Saturate      int     // cores beyond which the parallel part gets no faster; 0 = none
	Coherence     float64 // time added per core beyond the first, in units of the time on one core
	Drift         float64 // share by which the last epoch takes longer than the first
	Start         time.Duration

	Noise     float64 // sigma of the lognormal factor of each epoch
	RunNoise  float64 // sigma of the lognormal factor of each attempt
	RateNoise float64 // sigma of the lognormal factor of each rate in each epoch
	Paired    bool    // an epoch's noise is the same in every attempt
	Seed      int64

	Batch    string // environment variable with the batch size, empty = none
	Base     float64
	Exponent float64

	Loss               float64
	FinalLoss          float64
	Quality            float64
	QualityPerDoubling float64
	Tau                float64 // epochs after which the distance to the end is 1/e; 0 = a fifth of Epochs

	Memory int64 // peak, bytes

	Saves          bool          // whether checkpoint= was given
	Checkpoint     time.Duration // from the end of the epoch to the saved state
	CheckpointExit int           // 0 = it prints "saved" and goes on
	IgnoreSignal   bool

	Exit    int
	At      int // epoch in which it exits with Exit; 0 = after the last one
	HangAt  int
	Missing bool
	ShowEnv string

	ShowSettings bool

	Contended      []Span
	OwnerChangesAt time.Duration // since its submission; 0 = never
	DiesAt         time.Duration // since the attempt began; 0 = never

	QueueWait time.Duration // of each attempt after the first, before it may start
	ClosedAt  time.Duration // since its submission; 0 = never
	ClosedBy  string

	WattsIdle    float64 // of the whole node
	WattsCore    float64 // of one busy core
	EnergySource string  // empty = the cluster's

	Profile     string
	Rates       Rates
	PerfRunning float64 // share of the time that counters counted
}

// Span is a range of epochs, both ends included.
type Span struct{ First, Last int }

// Rates are what the job's counters show. Those without a unit in their comment
// are counts per CPU second.
type Rates struct {
	CPU             float64 // CPU seconds per second of work
	Spin            float64 // share of a waiting core's time that is burnt waiting
	System          float64 // share of CPU time in the kernel
	MinorFaults     float64
	MajorFaults     float64
	ContextSwitches float64
	Involuntary     float64 // share of the context switches
	Migrations      float64
	ReadChars       float64 // bytes per CPU second
	WriteChars      float64 // bytes per CPU second
	ReadBytes       float64 // bytes per CPU second
	WriteBytes      float64 // bytes per CPU second
	MemoryPressure  float64 // stalled seconds per second
	IOPressure      float64 // stalled seconds per second
}

// The bounds of an epoch keep every time within what a Duration holds.
const (
	minEpoch = time.Microsecond
	maxEpoch = 30 * 24 * time.Hour
)

// A contended epoch loses this share of every core to others.
const stolen = 0.2

func defaults() Behaviour {
	return Behaviour{
		Threads: "OMP_NUM_THREADS", Base: 32, Loss: 2.3, FinalLoss: 0.1, Quality: 0.9,
		Memory: 64 << 20, CheckpointExit: 85, WattsIdle: 40, WattsCore: 8,
		Profile: "compute", Rates: mustProfile("compute"), PerfRunning: 1,
	}
}

// profileNames lists the presets of profile=.
func profileNames() []string { return []string{"compute", "stream", "barrier", "alloc", "io"} }

// profileRates gives the rates of a preset. They are invented, but ordered as
// such programs are: what distinguishes two presets here distinguishes them in
// reality.
func profileRates(name string) (Rates, bool) {
	switch name {
	case "compute":
		return Rates{CPU: 1, System: 0.005, MinorFaults: 200, ContextSwitches: 30, Involuntary: 0.8, Migrations: 0.5, ReadChars: 1e4, WriteChars: 1e3}, true
	case "stream":
		return Rates{CPU: 1, System: 0.04, MinorFaults: 4e3, ContextSwitches: 60, Involuntary: 0.6, Migrations: 1, ReadChars: 1e4, WriteChars: 1e3, MemoryPressure: 0.01}, true
	case "barrier":
		return Rates{CPU: 1, Spin: 0.3, System: 0.15, MinorFaults: 300, ContextSwitches: 8e3, Involuntary: 0.1, Migrations: 40, ReadChars: 1e4, WriteChars: 1e3}, true
	case "alloc":
		return Rates{CPU: 1, System: 0.3, MinorFaults: 6e4, ContextSwitches: 400, Involuntary: 0.3, Migrations: 10, ReadChars: 1e4, WriteChars: 1e3, MemoryPressure: 0.02}, true
	case "io":
		return Rates{CPU: 0.4, System: 0.35, MinorFaults: 1e3, MajorFaults: 20, ContextSwitches: 5e3, Involuntary: 0.02, Migrations: 5, ReadChars: 2e8, WriteChars: 2e7, ReadBytes: 5e7, WriteBytes: 1e7, IOPressure: 0.5}, true
	}
	return Rates{}, false
}

func mustProfile(name string) Rates {
	r, ok := profileRates(name)
	if !ok {
		panic("sim: no preset " + name)
	}
	return r
}

// setting is what an attempt runs under, as far as its behaviour depends on it.
type setting struct {
	cores   int
	threads int
	batch   float64
}

// settingOf reads the environment of an attempt as the job would.
func (b *Behaviour) settingOf(cores int, env map[string]string) setting {
	s := setting{cores: cores, threads: cores, batch: b.Base}
	if n, err := strconv.Atoi(env[b.Threads]); err == nil && n > 0 {
		s.threads = n
	}
	if b.Batch != "" {
		if v, err := strconv.ParseFloat(env[b.Batch], 64); err == nil && v > 0 && !math.IsInf(v, 0) {
			s.batch = v
		}
	}
	return s
}

// usable is how many cores the job can use at once.
func (s setting) usable() int { return min(s.cores, s.threads) }

// relative is the time of the job's work on s, and the CPU time that it takes, both in
// units of its time on one core: Amdahl's law; with coherence= Gunther's universal
// scalability law. Cores that wait for memory or for each other's caches are busy.
func (b *Behaviour) relative(s setting) (wall, cpu float64) {
	cores := float64(s.usable())
	faster := cores
	if b.Saturate > 0 {
		faster = min(cores, float64(b.Saturate))
	}
	lost := b.Coherence * (cores - 1)
	over := max(0, float64(s.threads)/float64(s.cores)-1)
	wall = ((1 - b.Parallel) + b.Parallel/faster + lost) * (1 + b.Oversubscribe*over)
	return wall, (1 - b.Parallel) + b.Parallel*(cores/faster) + lost*cores
}

// epochTime is how long the epoch takes in the named run.
func (b *Behaviour) epochTime(s setting, run uint64, epoch int) time.Duration {
	work := b.Seconds * math.Pow(b.Base/s.batch, b.Exponent)
	wall, _ := b.relative(s)
	work *= 1 + b.Drift*float64(epoch-1)/float64(max(1, b.Epochs-1))
	t := work * wall * b.draw(b.RunNoise, run, 0, 0) * b.draw(b.Noise, run, epoch, 1)
	if b.contended(epoch) {
		t /= 1 - stolen
	}
	switch {
	case math.IsNaN(t), t > maxEpoch.Seconds():
		return maxEpoch
	case t < minEpoch.Seconds():
		return minEpoch
	}
	return time.Duration(t * float64(time.Second))
}

func (b *Behaviour) contended(epoch int) bool {
	for _, s := range b.Contended {
		if s.First <= epoch && epoch <= s.Last {
			return true
		}
	}
	return false
}

// lossAt and qualityAt are the learning curve: exponential approach to the end.
func (b *Behaviour) lossAt(epoch int) float64 {
	return b.FinalLoss + (b.Loss-b.FinalLoss)*b.left(epoch)
}

func (b *Behaviour) qualityAt(s setting, epoch int) float64 {
	end := b.Quality + b.QualityPerDoubling*math.Log2(s.batch/b.Base)
	return end * (1 - b.left(epoch))
}

func (b *Behaviour) left(epoch int) float64 {
	tau := b.Tau
	if tau == 0 {
		tau = float64(b.Epochs) / 5
	}
	return math.Exp(-float64(epoch) / tau)
}

// runSeed names a run: everything random in it follows from this number.
func (b *Behaviour) runSeed(cluster int64, name string, attempt int) uint64 {
	if b.Paired {
		attempt = 0
	}
	h := fnv.New64a()
	for _, part := range []string{strconv.FormatInt(cluster, 10), strconv.FormatInt(b.Seed, 10), name, strconv.Itoa(attempt)} {
		_, _ = h.Write([]byte(part)) // a hash never fails
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// draw is a lognormal factor of mean 1 that depends on its arguments alone.
func (b *Behaviour) draw(sigma float64, run uint64, epoch, stream int) float64 {
	if sigma == 0 {
		return 1
	}
	rng := rand.New(rand.NewPCG(run, uint64(epoch)<<16|uint64(stream)))
	return math.Exp(sigma*rng.NormFloat64() - sigma*sigma/2)
}
