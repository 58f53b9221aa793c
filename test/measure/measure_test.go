package measure

import (
	"errors"
	"os"
	"testing"
	"time"
)

func TestTheCPUOfAProcessIsItsOwnAndThatOfItsChildren(t *testing.T) {
	t.Parallel()
	const rest = " S 1 2 3 4 5 6 7 8 9 10 100 20 3 4 20 0 1 0 99 100 200"
	for stat, want := range map[string]time.Duration{
		"1 (a)" + rest:              1270 * time.Millisecond,
		"1 (a name) 9 9 (x)" + rest: 1270 * time.Millisecond,
		"1 (a) S 1 2":               -1,
		"1 (a) S 1 2 3 4 5 6 7 8 9 10 many 20 3 4 20": -1,
		"": -1,
	} {
		own, children, err := cpuOf(stat)
		if want < 0 && !errors.Is(err, errProc) || want >= 0 && (own+children != want || own != 1200*time.Millisecond || err != nil) {
			t.Errorf("%q: %v and %v (%v), want %v", stat, own, children, err, want)
		}
	}
	u, err := Used(os.Getpid())
	if err != nil || u.RSS <= 0 || u.Peak < u.RSS {
		t.Errorf("this process: %+v (%v)", u, err)
	}
}

func TestAQuantileIsOneOfTheTimes(t *testing.T) {
	t.Parallel()
	var times []time.Duration
	for i := range 20 {
		times = append(times, time.Duration(i+1))
	}
	for part, want := range map[float64]time.Duration{0: 1, 0.05: 1, 0.5: 10, 0.95: 19, 1: 20} {
		if got := Quantile(times, part); got != want {
			t.Errorf("%v of 1 to 20: %d, want %d", part, got, want)
		}
	}
	if got := Quantile(nil, 0.5); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
}
