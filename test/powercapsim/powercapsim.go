package powercapsim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Wraps of real counters in microjoules.
const (
	WrapIntel = 262_143_328_850
	WrapAMD   = 65_532_610_987
)

// DRAMShare is the part of a package's watts that its DRAM takes beside it.
const DRAMShare = 0.1

// Config says what machine is pretended; zero fields take the defaults.
type Config struct {
	Dir       string  // of the tree: the sysfs whose class/powercap it is; required
	Cores     int     // that are behind the load, default 1
	Packages  int     // default 1; they share the load evenly
	IdleWatts float64 // of all packages, default 20
	MaxWatts  float64 // of all packages with all cores busy, default 100
	Wrap      uint64  // default WrapIntel
	DRAM      bool    // each package has a DRAM zone beside it
	PSys      bool    // there is a zone of the whole platform, 1.2 times the rest
}

// Sim is the tree. It is used by one goroutine.
type Sim struct {
	cfg    Config
	zones  []*zone
	joules float64 // of packages and DRAM, which is what a reader should find
}

type zone struct {
	dir   string
	share float64 // of the watts of all packages
	part  bool    // its joules are part of Joules
	value float64 // microjoules, unwrapped
}

// ErrConfig means that no machine is like that.
var ErrConfig = errors.New("powercapsim: want a directory, 0 <= idle <= max watts")

// New makes the tree with all counters near their wrap, so that each test meets one.
func New(cfg Config) (*Sim, error) {
	if cfg.Cores <= 0 {
		cfg.Cores = 1
	}
	if cfg.Packages <= 0 {
		cfg.Packages = 1
	}
	if cfg.IdleWatts == 0 && cfg.MaxWatts == 0 {
		cfg.IdleWatts, cfg.MaxWatts = 20, 100
	}
	if cfg.Wrap == 0 {
		cfg.Wrap = WrapIntel
	}
	if cfg.Dir == "" || cfg.IdleWatts < 0 || cfg.MaxWatts < cfg.IdleWatts || math.IsInf(cfg.MaxWatts, 0) || math.IsNaN(cfg.MaxWatts-cfg.IdleWatts) {
		return nil, ErrConfig
	}
	s := &Sim{cfg: cfg}
	share := 1 / float64(cfg.Packages)
	for i := range cfg.Packages {
		id := "intel-rapl:" + strconv.Itoa(i)
		if err := s.add(id, fmt.Sprintf("package-%d", i), share, true); err != nil {
			return nil, err
		}
		if !cfg.DRAM {
			continue
		}
		if err := s.add(id+":0", "dram", DRAMShare*share, true); err != nil {
			return nil, err
		}
	}
	if cfg.PSys {
		if err := s.add("intel-rapl:"+strconv.Itoa(cfg.Packages), "psys", 1.2, false); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Sim) add(id, name string, share float64, part bool) error {
	z := &zone{dir: filepath.Join(s.cfg.Dir, "class", "powercap", id), share: share, part: part, value: float64(s.cfg.Wrap) - 5e6}
	if err := os.MkdirAll(z.dir, 0o755); err != nil {
		return fmt.Errorf("powercapsim: %w", err)
	}
	s.zones = append(s.zones, z)
	for file, text := range map[string]string{"name": name, "max_energy_range_uj": strconv.FormatUint(s.cfg.Wrap, 10)} {
		if err := replace(filepath.Join(z.dir, file), text); err != nil {
			return err
		}
	}
	return s.show(z)
}

// Step lets time pass in which the cores were busy for so many seconds together.
// More than there are is as many as there are.
func (s *Sim) Step(elapsed time.Duration, busy float64) error {
	seconds := elapsed.Seconds()
	if seconds <= 0 {
		return nil
	}
	share := min(max(busy/(seconds*float64(s.cfg.Cores)), 0), 1)
	joules := (s.cfg.IdleWatts + (s.cfg.MaxWatts-s.cfg.IdleWatts)*share) * seconds
	var errs []error
	for _, z := range s.zones {
		z.value += joules * z.share * 1e6
		if z.part {
			s.joules += joules * z.share
		}
		errs = append(errs, s.show(z))
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

func (s *Sim) show(z *zone) error {
	return replace(filepath.Join(z.dir, "energy_uj"), strconv.FormatUint(uint64(z.value)%s.cfg.Wrap, 10))
}

// replace writes a file so that whoever opens it finds all of it.
func replace(path, text string) error {
	tmp := path + ".new"
	if err := os.WriteFile(tmp, []byte(text+"\n"), 0o644); err != nil { //nolint:gosec // sysfs files are for all to read
		return fmt.Errorf("powercapsim: %w", err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("powercapsim: %w", err)
	}
	return nil
}
