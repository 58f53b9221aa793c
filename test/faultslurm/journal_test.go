package faultslurm_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// told is what a job's own journal says.
type told struct {
	attempts []attemptTold
	ends     int
	ended    time.Time
	events   []time.Time // when attempts began, left or ended
	// again is how often an attempt that had saved and worked on came to its end before
	// the requeue reached it, so that the next did the rest again from what was saved.
	again int
	// What is wrong with it, empty where nothing is.
	twice  []string // it ran beside itself, or again after its end
	epochs []string // that are missing, out of order, or were done again without a checkpoint that explains it
}

// attemptTold is one attempt.
type attemptTold struct {
	token string
	began time.Time
	from  int // epochs that were saved before
	done  int // the last epoch
	saved int // the last epoch that was saved; 0 = it never was
	ended bool
	left  bool
	cpus  string
	batch string
}

// read understands a journal. Lines that do not belong to what faultjob writes are a
// fault of the journal.
func readJournal(text string, total int) told {
	var out told
	checkpoint, reached, hastened := 0, 0, false
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 2 || !strings.HasSuffix(line, "\n") {
			out.epochs = append(out.epochs, fmt.Sprintf("half a line %q", line))
			continue
		}
		if words[1] == "beside" {
			out.twice = append(out.twice, "an attempt began before the one before had ended")
			continue
		}
		if words[1] == "begin" {
			out.begin(words, checkpoint, reached)
			continue
		}
		n := len(out.attempts) - 1
		if n < 0 || out.attempts[n].token != words[0] {
			out.twice = append(out.twice, fmt.Sprintf("%q of an attempt that was over", strings.TrimSpace(line)))
			continue
		}
		a := &out.attempts[n]
		switch words[1] {
		case "epoch":
			e := number(words)
			if e != a.done+1 {
				out.epochs = append(out.epochs, fmt.Sprintf("epoch %d after %d", e, a.done))
			}
			a.done, reached = e, max(reached, e)
		case "saved":
			a.saved, checkpoint = number(words), number(words)
			if a.saved != a.done {
				out.epochs = append(out.epochs, fmt.Sprintf("saved %d after epoch %d", a.saved, a.done))
			}
		case "last":
			if n := number(words); hastened || n < a.done || n > total {
				out.epochs = append(out.epochs, fmt.Sprintf("its end was brought forward to epoch %d of %d", n, total))
			}
			total, hastened = number(words), true
		case "leave":
			a.left = true
			out.event(words)
		case "end":
			a.ended = true
			out.ends++
			if a.done != total {
				out.epochs = append(out.epochs, fmt.Sprintf("it ended after %d of %d epochs", a.done, total))
			}
			out.ended = out.event(words)
		}
	}
	if out.ends > 1+out.again {
		out.twice = append(out.twice, fmt.Sprintf("it came to its end %d times", out.ends))
	}
	return out
}

// begin takes in a new attempt. What the one before did and did not save is done
// again: that is right only where it was saved for a move, and went on.
func (t *told) begin(words []string, checkpoint, reached int) {
	a := attemptTold{token: words[0]}
	if _, ms, ok := strings.Cut(words[0], "."); ok {
		if v, err := strconv.ParseInt(ms, 10, 64); err == nil {
			a.began = time.UnixMilli(v)
			t.events = append(t.events, a.began)
		}
	}
	a.from = number(words)
	a.done = a.from
	for _, w := range words {
		if v, ok := strings.CutPrefix(w, "cpus="); ok {
			a.cpus = v
		}
		if v, ok := strings.CutPrefix(w, "batch="); ok {
			a.batch = v
		}
	}
	if a.from != checkpoint {
		t.epochs = append(t.epochs, fmt.Sprintf("an attempt went on after %d, saved were %d", a.from, checkpoint))
	}
	if n := len(t.attempts); n > 0 {
		before := t.attempts[n-1]
		switch {
		case before.ended && before.saved > 0 && !before.left && a.from == before.saved:
			t.again++
		case before.ended:
			t.twice = append(t.twice, "an attempt began after the job's end")
		}
		if reached > checkpoint && (before.saved == 0 || before.left) {
			t.epochs = append(t.epochs, fmt.Sprintf("epochs %d to %d were lost: nobody had asked to save them", checkpoint+1, reached))
		}
	}
	t.attempts = append(t.attempts, a)
}

// event is when something happened that Slurm had to be told of.
func (t *told) event(words []string) time.Time {
	at := time.UnixMilli(int64(number(words)))
	t.events = append(t.events, at)
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

func (t told) wrong() bool { return len(t.twice)+len(t.epochs) > 0 }

func TestAJournalTellsWhatBecameOfItsJob(t *testing.T) {
	t.Parallel()
	const first = "1.5 begin 0 restart=- cpus=1 batch=-\n1.5 epoch 1\n1.5 epoch 2\n"
	for _, c := range []struct {
		name, text    string
		twice, epochs bool
		ends, again   int
	}{
		{name: "a job in one attempt", text: first + "1.5 epoch 3\n1.5 end\n", ends: 1},
		{name: "a job that saved, left and went on", text: first + "1.5 saved 2\n1.5 leave\n2.5 begin 2\n2.5 epoch 3\n2.5 end\n", ends: 1},
		{name: "a job that saved, worked on and did that again", text: first + "1.5 saved 2\n1.5 epoch 3\n2.5 begin 2\n2.5 epoch 3\n2.5 end\n", ends: 1},
		{name: "a job that was ended without having saved", text: first + "2.5 begin 0\n2.5 epoch 1\n2.5 epoch 2\n2.5 epoch 3\n2.5 end\n", epochs: true, ends: 1},
		{
			name: "a job that saved, ended before it was requeued, and did the rest again", ends: 2, again: 1,
			text: first + "1.5 saved 2\n1.5 epoch 3\n1.5 end\n2.5 begin 2\n2.5 epoch 3\n2.5 end\n",
		},
		{name: "a job that ran again after its end", text: first + "1.5 epoch 3\n1.5 end\n2.5 begin 0\n2.5 epoch 1\n", twice: true, epochs: true, ends: 1},
		{name: "a job that ended before its last epoch", text: first + "1.5 end\n", epochs: true, ends: 1},
		{name: "a job whose end was brought forward", text: first + "1.5 last 2\n1.5 end\n", ends: 1},
		{
			name: "a job that worked on after its save, and whose end was brought forward after that", ends: 1,
			text: "1.5 begin 0\n1.5 epoch 1\n1.5 saved 1\n1.5 epoch 2\n1.5 epoch 3\n2.5 begin 1\n2.5 epoch 2\n2.5 last 2\n2.5 end\n",
		},
		{name: "a job that did more than its last epoch", text: first + "1.5 last 2\n1.5 epoch 3\n1.5 end\n", epochs: true, ends: 1},
		{name: "a job whose end was brought forward behind itself", text: first + "1.5 last 1\n1.5 end\n", epochs: true, ends: 1},
		{name: "two attempts at a time", text: first + "2.5 beside\n2.5 begin 0\n", twice: true, epochs: true},
		{name: "an attempt that wrote after the next began", text: first + "1.5 saved 2\n2.5 begin 2\n1.5 epoch 3\n", twice: true},
		{name: "an epoch that is missing", text: "1.5 begin 0\n1.5 epoch 1\n1.5 epoch 3\n1.5 end\n", epochs: true, ends: 1},
		{name: "an epoch that was done again in one attempt", text: first + "1.5 epoch 2\n1.5 epoch 3\n1.5 end\n", epochs: true, ends: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := readJournal(c.text, 3)
			if (len(got.twice) > 0) != c.twice || (len(got.epochs) > 0) != c.epochs || got.ends != c.ends || got.again != c.again {
				t.Errorf("twice %q, epochs %q, %d ends", got.twice, got.epochs, got.ends)
			}
		})
	}
}

// Whatever is cut out of a journal, or stands in it twice, is seen.
func TestAJournalWithAnEpochTooFewOrTooManyIsSeen(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		total := rapid.IntRange(2, 30).Draw(rt, "epochs")
		lines := []string{"1.0 begin 0\n"}
		var epochs []int // the lines that are epochs
		attempt := 1
		for e := 1; e <= total; e++ {
			epochs = append(epochs, len(lines))
			lines = append(lines, fmt.Sprintf("%d.0 epoch %d\n", attempt, e))
			if e < total && rapid.Bool().Draw(rt, "moved") {
				lines = append(lines, fmt.Sprintf("%d.0 saved %d\n%d.0 leave\n%d.0 begin %d\n", attempt, e, attempt, attempt+1, e))
				attempt++
			}
		}
		lines = append(lines, fmt.Sprintf("%d.0 end\n", attempt))
		if got := readJournal(strings.Join(lines, ""), total); got.wrong() || got.ends != 1 {
			rt.Fatalf("a whole journal: %+v", got)
		}
		at := rapid.SampledFrom(epochs).Draw(rt, "at")
		changed := slices.Delete(slices.Clone(lines), at, at+1)
		if rapid.Bool().Draw(rt, "twice") {
			changed = slices.Insert(slices.Clone(lines), at, lines[at])
		}
		if got := readJournal(strings.Join(changed, ""), total); !got.wrong() {
			rt.Fatalf("nothing wrong seen in %q", changed)
		}
	})
}
