package powercapsim_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/hostfs"
	"pitchpipe/test/powercapsim"
)

func TestTheExporterReadsWhatTheTreeTook(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		cfg  powercapsim.Config
	}{
		{"one package", powercapsim.Config{Cores: 4, Packages: 1}},
		{"two packages with DRAM", powercapsim.Config{Cores: 64, Packages: 2, DRAM: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			cfg := tc.cfg
			cfg.Dir = t.TempDir()
			sim, err := powercapsim.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			meter, err := energy.NewPowercap(hostfs.Root{SysFS: cfg.Dir}, energy.DefaultModel(cfg.Cores))
			if err != nil {
				t.Fatal(err)
			}
			act := energy.Activity{Elapsed: 30 * time.Second, Cores: cfg.Cores}
			if _, _, err := step(t.Context(), meter, act); err != nil {
				t.Fatal(err)
			}
			got := 0.0
			for i := range 500 {
				if err := sim.Step(act.Elapsed, float64(i%5)/4*30*float64(cfg.Cores)); err != nil {
					t.Fatal(err)
				}
				split, ok, err := step(t.Context(), meter, act)
				if err != nil || !ok {
					t.Fatalf("ok %v, err %v", ok, err)
				}
				got += split.Total
			}
			if want := sim.Joules(); math.Abs(got-want) > 1e-4*want {
				t.Errorf("read %v J of %v J", got, want)
			}
			scale := 1.0
			if cfg.DRAM {
				scale += powercapsim.DRAMShare
			}
			if want := scale * (powercapsim.IdleWatts + powercapsim.MaxWatts) / 2 * 500 * 30; math.Abs(sim.Joules()-want) > 1e-6*want {
				t.Errorf("took %v J, half busy on average that is %v J", sim.Joules(), want)
			}
		})
	}
}

func TestRunFollowsTheLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sim, err := powercapsim.New(powercapsim.Config{Dir: t.TempDir(), Cores: 2, Packages: 1})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- sim.Run(ctx, 100*time.Millisecond, func() (float64, error) { return time.Since(began).Seconds(), nil }) // one of two cores
		}()
		time.Sleep(10*time.Second + time.Millisecond)
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got := sim.Joules(); math.Abs(got-600) > 1e-6 {
			t.Errorf("%v J in 10 s at 60 W", got)
		}
	})
}

func TestALoadThatCannotBeReadEndsTheRun(t *testing.T) {
	t.Parallel()
	lost := errors.New("lost")
	sim, err := powercapsim.New(powercapsim.Config{Dir: t.TempDir(), Cores: 1, Packages: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := sim.Run(t.Context(), time.Hour, func() (float64, error) { return 0, lost }); !errors.Is(err, lost) {
		t.Errorf("got %v, want %v", err, lost)
	}
}

// step reads a meter and settles the interval.
func step(ctx context.Context, m energy.Meter, a energy.Activity) (energy.Split, bool, error) {
	if err := m.Read(ctx, a.Elapsed); err != nil {
		return energy.Split{}, false, err
	}
	s, ok := m.Settle(a)
	return s, ok, nil
}
