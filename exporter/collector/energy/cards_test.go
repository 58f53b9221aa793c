package energy_test

import (
	"math"
	"os"
	"strconv"
	"testing"
	"time"

	"pitchpipe/exporter/collector/energy"
)

// board is a machine with a sensor of all that it takes, its graphics cards included.
type board struct {
	t  *testing.T
	m  *energy.Measured
	to string  // file of the sensor
	on float64 // watts that it shows
	at time.Time
}

func newBoard(t *testing.T) *board {
	t.Helper()
	root := plant(t, map[string]string{"class/hwmon/hwmon0/name": "power_meter", "class/hwmon/hwmon0/power1_average": "300000000"})
	sensors, err := energy.ParseSensors()
	if err != nil {
		t.Fatal(err)
	}
	m, err := energy.NewHWMon(root, sensors, energy.Model{Idle: 116, Max: 400})
	if err != nil {
		t.Fatal(err)
	}
	b := &board{t: t, m: m, to: root.Sys("class", "hwmon", "hwmon0", "power1_average"), at: time.Unix(1_800_000_000, 0)}
	b.step(0, energy.Activity{})
	return b
}

// step lets a second pass in which the sensor shows that many watts in the end.
func (b *board) step(watts float64, a energy.Activity) energy.Split {
	b.t.Helper()
	if watts > 0 {
		if watts != b.on {
			if err := os.WriteFile(b.to, []byte(strconv.FormatFloat(watts*1e6, 'f', 0, 64)), 0o600); err != nil {
				b.t.Fatal(err)
			}
			b.on = watts
		}
		a.Elapsed, b.at = time.Second, b.at.Add(time.Second)
	}
	a.At, a.Cores = b.at, 16
	s, _, err := step(b.t.Context(), b.m, a)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func TestWhatTheCardsTakeIsNoPartOfTheMachinesIdlePower(t *testing.T) {
	t.Parallel()
	b := newBoard(t)
	for range 15 {
		b.step(300, energy.Activity{GPUs: 240})
	}
	if watts, basis := b.m.IdleWatts(); watts != 60 || basis != "calibrated" {
		t.Errorf("idle %v W, %s; want the 60 W beside the cards' 240", watts, basis)
	}
	if s := b.step(300, energy.Activity{GPUs: 240, Busy: 8}); s.Total != 60 || s.Idle != 60 || !s.WithGPUs {
		t.Errorf("%+v, want 60 J beside the cards, all of them idle", s)
	}
}

func TestNothingIsLearnedWhileCardsWorkOrAreNotKnown(t *testing.T) {
	t.Parallel()
	b := newBoard(t)
	for range 15 {
		b.step(300, energy.Activity{GPUs: 240, Guessed: true})
	}
	if watts, basis := b.m.IdleWatts(); watts != 116 || basis != "modelled" {
		t.Errorf("idle %v W, %s, while the cards were guessed", watts, basis)
	}
	for range 15 {
		b.step(300, energy.Activity{GPUs: 240})
	}
	for range 15 {
		b.step(840, energy.Activity{GPUs: 800}) // their sensors and the board's differ by 20 W
	}
	if watts, basis := b.m.IdleWatts(); watts != 60 || basis != "calibrated" {
		t.Errorf("idle %v W, %s; want what it took while the cards were at rest", watts, basis)
	}
}

// The board's sensor is some seconds behind the cards.
func TestWhatTheSensorShowsLaterIsTakenOutLaterAndNotForEver(t *testing.T) {
	t.Parallel()
	b := newBoard(t)
	for range 12 {
		b.step(300, energy.Activity{GPUs: 240})
	}
	total := 0.0
	for i := range 12 {
		cards, shown := 240.0, 300.0
		if i < 3 {
			cards = 700 // three seconds of work
		}
		if i >= 2 && i < 5 {
			shown = 760 // which the sensor shows two seconds later
		}
		s := b.step(shown, energy.Activity{GPUs: cards})
		if s.Total < 0 || s.Idle > 60 {
			t.Errorf("second %d: %+v", i, s)
		}
		total += s.Total
	}
	if math.Abs(total-12*60) > 1e-6 {
		t.Errorf("%v J beside the cards, want %v", total, 12*60)
	}
	// Cards that are said to take more than the board shows at all.
	for range 600 {
		b.step(300, energy.Activity{GPUs: 400})
	}
	paid := 0
	for b.step(300, energy.Activity{GPUs: 0}).Total < 250 {
		if paid++; paid > 10 {
			t.Fatal("the machine's joules are still taken for those of cards, ten seconds after")
		}
	}
}
