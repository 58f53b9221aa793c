package measure

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestAProcessIsMeasuredWithTheChildrenThatItWaitedFor(t *testing.T) {
	t.Parallel()
	if err := exec.CommandContext(t.Context(), "sh", "-c", "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done").Run(); err != nil {
		t.Fatal(err)
	}
	u, err := Used(os.Getpid())
	if err != nil || u.Children <= 0 || u.CPU < u.Children || u.RSS <= 0 || u.Peak < u.RSS {
		t.Errorf("this process: %+v (%v)", u, err)
	}
	if _, err := Used(-1); err == nil {
		t.Error("a process that is not there was measured")
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
