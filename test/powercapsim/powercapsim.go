package powercapsim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// What the machine takes.
const (
	IdleWatts = 20.0  // of all packages without work
	MaxWatts  = 100.0 // of all packages with all cores busy
	DRAMShare = 0.1   // of a package's watts, which its DRAM takes in addition
)

// wrap is that of a real counter in microjoules.
const wrap = 262_143_328_850

// Config says what machine is pretended.
type Config struct {
	Dir      string // of the tree: the sysfs whose class/powercap it is
	Cores    int    // that are behind the load
	Packages int    // which share the load evenly
	DRAM     bool   // each package has a DRAM zone next to it
}

// Sim is the tree. It is used by one goroutine.
type Sim struct {
	cores  int
	zones  []*zone
	joules float64 // of packages and DRAM, which is what a reader should find
}

type zone struct {
	dir   string
	share float64 // of the watts of all packages
	value float64 // microjoules, unwrapped
}

// New makes the tree with all counters near their wrap, so that each test meets one.
func New(cfg Config) (*Sim, error) {
	s := &Sim{cores: cfg.Cores}
	share := 1 / float64(cfg.Packages)
	for i := range cfg.Packages {
		id := filepath.Join(cfg.Dir, "class", "powercap", "intel-rapl:"+strconv.Itoa(i))
		if err := s.add(id, fmt.Sprintf("package-%d", i), share); err != nil {
			return nil, err
		}
		if !cfg.DRAM {
			continue
		}
		if err := s.add(id+":0", "dram", DRAMShare*share); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Sim) add(dir, name string, share float64) error {
	z := &zone{dir: dir, share: share, value: wrap - 5e6}
	if err := os.MkdirAll(z.dir, 0o755); err != nil {
		return fmt.Errorf("powercapsim: %w", err)
	}
	s.zones = append(s.zones, z)
	return errors.Join(z.write("name", name), z.write("max_energy_range_uj", strconv.Itoa(wrap)), z.show())
}

// Step lets time pass in which the cores were busy for so many seconds together.
// More than there are is as many as there are.
func (s *Sim) Step(elapsed time.Duration, busy float64) error {
	seconds := elapsed.Seconds()
	if seconds <= 0 {
		return nil
	}
	joules := (IdleWatts + (MaxWatts-IdleWatts)*min(max(busy/(seconds*float64(s.cores)), 0), 1)) * seconds
	var errs []error
	for _, z := range s.zones {
		z.value += joules * z.share * 1e6
		s.joules += joules * z.share
		errs = append(errs, z.show())
	}
	return errors.Join(errs...)
}

// Joules is what packages and DRAM took since New: what a reader should find.
func (s *Sim) Joules() float64 { return s.joules }

// Run steps each interval with what busy says until ctx ends. busy returns the CPU
// seconds of all cores since any beginning, and only grows.
func (s *Sim) Run(ctx context.Context, every time.Duration, busy func() (float64, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	last, err := busy()
	if err != nil {
		return err
	}
	at := time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now, err := busy()
		if err != nil {
			return err
		}
		elapsed := time.Since(at)
		if err := s.Step(elapsed, now-last); err != nil {
			return err
		}
		last, at = now, at.Add(elapsed)
	}
}

func (z *zone) show() error {
	return z.write("energy_uj", strconv.FormatUint(uint64(z.value)%wrap, 10))
}

// write writes a file so that its readers find all of it.
func (z *zone) write(name, text string) error {
	path := filepath.Join(z.dir, name)
	tmp := path + ".new"
	if err := os.WriteFile(tmp, []byte(text+"\n"), 0o644); err != nil { //nolint:gosec // sysfs files are for all to read
		return fmt.Errorf("powercapsim: %w", err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("powercapsim: %w", err)
	}
	return nil
}
