package fault

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Told is what a job's own journal says.
type Told struct {
	Attempts []Attempt
	Ends     int
	Ended    time.Time
	Events   []time.Time // when attempts began, left or ended
	// Again is how often an attempt that had saved and worked on came to its end before
	// its replacement reached it, so that the next did the rest again from what was saved.
	Again  int
	Reruns []Rerun
	// Lost are the epochs that attempts did and were never asked to save: each needs an
	// attempt that its controller threw away.
	Lost []string
	// What is wrong with it, empty where nothing is.
	Twice  []string // it ran twice at once, or again after its end
	Epochs []string // that are missing, out of order, or were done again without a checkpoint that explains it
}

// Attempt is one attempt.
type Attempt struct {
	Token string
	Began time.Time
	From  int // epochs that were saved before
	Done  int // the last epoch
	Saved int // the last epoch that was saved; 0 = it never was
	Ended bool
	Left  bool
	Batch string
}

// Rerun is an attempt that did finished work again until it was stopped.
type Rerun struct {
	Began, Ended time.Time
	token        string
}

// Read understands the journal of a job of so many epochs. Lines that do not belong to
// what faultjob writes are a fault of the journal.
func Read(text string, total int) Told {
	var out Told
	checkpoint, reached, hastened := 0, 0, false
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 2 || !strings.HasSuffix(line, "\n") {
			out.Epochs = append(out.Epochs, fmt.Sprintf("half a line %q", line))
			continue
		}
		if words[1] == "beside" {
			out.Twice = append(out.Twice, "an attempt began before the one before had ended")
			continue
		}
		if words[1] == "begin" {
			out.begin(words, checkpoint, reached)
			reached = checkpoint // what was done beyond is judged
			continue
		}
		if out.rerun(words) {
			continue
		}
		n := len(out.Attempts) - 1
		if n < 0 || out.Attempts[n].Token != words[0] {
			out.Twice = append(out.Twice, fmt.Sprintf("%q of an attempt that was over", strings.TrimSpace(line)))
			continue
		}
		a := &out.Attempts[n]
		switch words[1] {
		case "epoch":
			e := number(words)
			if e != a.Done+1 {
				out.Epochs = append(out.Epochs, fmt.Sprintf("epoch %d after %d", e, a.Done))
			}
			a.Done, reached = e, max(reached, e)
		case "saved":
			a.Saved, checkpoint = number(words), number(words)
			if a.Saved != a.Done {
				out.Epochs = append(out.Epochs, fmt.Sprintf("saved %d after epoch %d", a.Saved, a.Done))
			}
		case "last":
			if n := number(words); hastened || n < a.Done || n > total {
				out.Epochs = append(out.Epochs, fmt.Sprintf("its end was brought forward to epoch %d of %d", n, total))
			}
			total, hastened = number(words), true
		case "leave":
			a.Left = true
			out.event(words)
		case "term":
			out.event(words)
		case "end":
			a.Ended = true
			out.Ends++
			if a.Done != total {
				out.Epochs = append(out.Epochs, fmt.Sprintf("it ended after %d of %d epochs", a.Done, total))
			}
			out.Ended = out.event(words)
		}
	}
	if out.Ends > 1+out.Again {
		out.Twice = append(out.Twice, fmt.Sprintf("it came to its end %d times", out.Ends))
	}
	return out
}

// rerun takes in a line of an attempt that does finished work again; false where it is
// another's.
func (t *Told) rerun(words []string) bool {
	at := time.UnixMilli(int64(number(words)))
	if words[1] == "rerun" {
		t.Reruns = append(t.Reruns, Rerun{Began: at, Ended: at, token: words[0]})
		return true
	}
	for i := range t.Reruns {
		if t.Reruns[i].token == words[0] {
			t.Reruns[i].Ended = at
			return true
		}
	}
	return false
}

// begin takes in a new attempt. What the one before did and did not save is done
// again: that is right only where it was saved for a move, and went on.
func (t *Told) begin(words []string, checkpoint, reached int) {
	a := Attempt{Token: words[0]}
	if _, ms, ok := strings.Cut(words[0], "."); ok {
		if v, err := strconv.ParseInt(ms, 10, 64); err == nil {
			a.Began = time.UnixMilli(v)
			t.Events = append(t.Events, a.Began)
		}
	}
	a.From = number(words)
	a.Done = a.From
	for _, w := range words {
		if v, ok := strings.CutPrefix(w, "batch="); ok {
			a.Batch = v
		}
	}
	if a.From != checkpoint {
		t.Epochs = append(t.Epochs, fmt.Sprintf("an attempt went on after %d, saved were %d", a.From, checkpoint))
	}
	if n := len(t.Attempts); n > 0 {
		before := t.Attempts[n-1]
		switch {
		case before.Ended && before.Saved > 0 && !before.Left && a.From == before.Saved:
			t.Again++
		case before.Ended:
			t.Twice = append(t.Twice, "an attempt began after the job's end")
		}
		if reached > checkpoint && (before.Saved == 0 || before.Left) {
			t.Lost = append(t.Lost, fmt.Sprintf("epochs %d to %d were lost: the job was never asked to save them", checkpoint+1, reached))
		}
	}
	t.Attempts = append(t.Attempts, a)
}

// event is when something happened that the scheduler had to be told of.
func (t *Told) event(words []string) time.Time {
	at := time.UnixMilli(int64(number(words)))
	t.Events = append(t.Events, at)
	return at
}

func number(words []string) int {
	if len(words) < 3 {
		return -1
	}
	n, err := strconv.Atoi(words[2])
	if err != nil {
		return -1
	}
	return n
}

// Discarded takes in how many attempts of the job its controller threw away: what is lost
// beyond these is wrong.
func (t *Told) Discarded(n int) {
	t.Epochs = append(t.Epochs, t.Lost[min(n, len(t.Lost)):]...)
	t.Lost = t.Lost[:min(n, len(t.Lost))]
}
