package knowledge

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
)

func TestManyReadAndWriteAtOnce(t *testing.T) {
	t.Parallel()
	s := open(t, file(t))
	const writers, each = 4, 15
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				o := observation(fmt.Sprintf("w%d-%d", w, i), i)
				o.Kind = kind(strconv.Itoa(i % 3))
				if added, err := s.Put(o); err != nil || !added {
					t.Errorf("Put %s = %t, %v", o.ID, added, err)
				}
				// What was put is seen by its own writer at once.
				obs, err := s.Observations(o.Kind)
				found := false
				for _, x := range obs {
					found = found || x.ID == o.ID
				}
				if err != nil || !found {
					t.Errorf("%s is not seen after its put: %v", o.ID, err)
				}
			}
		})
		wg.Go(func() {
			for range each {
				all, err := s.All()
				if err != nil {
					t.Error(err)
				}
				seen := map[string]bool{}
				for _, o := range all {
					if seen[o.ID] {
						t.Errorf("%s is there twice", o.ID)
					}
					seen[o.ID] = true
				}
			}
		})
	}
	wg.Wait()
	if all, err := s.All(); err != nil || len(all) != writers*each {
		t.Errorf("%d observations, %v, want %d", len(all), err, writers*each)
	}
}

// What a writer said is written is there after SIGKILL, and whole.
func TestNothingIsLostWhenTheWriterIsKilled(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := file(t)
	last := -1
	for round := range 4 {
		cmd := exec.CommandContext(t.Context(), exe)
		if round > 0 { // its own numbers begin again: a put of the same ID changes nothing
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		cmd.Env = append(os.Environ(), writerEnv+"="+path)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		last = -1
		for lines.Scan() {
			if last, err = strconv.Atoi(lines.Text()); err != nil {
				t.Fatal(err)
			}
			if last == 7*round+5 {
				// Killed at once, in the middle of whatever comes next.
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // killed
		s := open(t, path)
		all, err := s.All()
		if err != nil || len(all) < last+1 || len(all) > last+2 {
			t.Fatalf("round %d: %d observations after %d were acknowledged, %v", round, len(all), last+1, err)
		}
		records := 0
		err = s.ForEachJSON("jobs", func(string, func(any) error) error { records++; return nil })
		if err != nil || records != len(all) {
			t.Errorf("round %d: %d records and %d observations, %v: a change was torn", round, records, len(all), err)
		}
		if err := errors.Join(s.Check(), s.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if last < 5 {
		t.Errorf("the writer wrote only %d", last+1)
	}
}
