package fault_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pitchpipe/test/fault"
)

func TestAJournalTellsWhatBecameOfItsJob(t *testing.T) {
	t.Parallel()
	const first = "1.5 begin 0 restart=- cpus=1 batch=-\n1.5 epoch 1\n1.5 epoch 2\n"
	for _, c := range []struct {
		name, text    string
		twice, epochs bool
		ends, again   int
		discards      int
		reruns        []time.Duration
	}{
		{name: "a job in one attempt", text: first + "1.5 epoch 3\n1.5 end\n", ends: 1},
		{name: "a job that saved, left and went on", text: first + "1.5 saved 2\n1.5 leave\n2.5 begin 2\n2.5 epoch 3\n2.5 end\n", ends: 1},
		{name: "a job that saved, worked on and did that again", text: first + "1.5 saved 2\n1.5 epoch 3\n2.5 begin 2\n2.5 epoch 3\n2.5 end\n", ends: 1},
		{name: "a job that was ended without having saved", text: first + "2.5 begin 0\n2.5 epoch 1\n2.5 epoch 2\n2.5 epoch 3\n2.5 end\n", epochs: true, ends: 1},
		{name: "a job whose second attempt was thrown away", text: first + "1.5 saved 2\n1.5 leave\n2.5 begin 2\n2.5 epoch 3\n3.5 begin 2\n3.5 epoch 3\n3.5 end\n", discards: 1, ends: 1},
		{name: "one whose second attempt was not thrown away", text: first + "1.5 saved 2\n1.5 leave\n2.5 begin 2\n2.5 epoch 3\n3.5 begin 2\n3.5 epoch 3\n3.5 end\n", epochs: true, ends: 1},
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
		{name: "a job that did its work again until it was stopped", text: first + "1.5 epoch 3\n1.5 end\n2.5 rerun 1000\n2.5 again 1050\n2.5 stopped 1070\n", ends: 1, reruns: []time.Duration{70 * time.Millisecond}},
		{name: "a job that was told to end after it had saved", text: first + "1.5 saved 2\n1.5 epoch 3\n1.5 term 9\n2.5 begin 2\n2.5 epoch 3\n2.5 end\n", ends: 1},
		{
			name: "an attempt that was told to end before its first epoch", ends: 1,
			text: "1.5 begin 0\n1.5 epoch 1\n1.5 saved 1\n1.5 epoch 2\n1.5 term 9\n2.5 begin 1\n2.5 saved 1\n2.5 leave 9\n3.5 begin 1\n3.5 epoch 2\n3.5 epoch 3\n3.5 end\n",
		},
		{name: "two attempts at a time", text: first + "2.5 beside\n2.5 begin 0\n", twice: true, epochs: true},
		{name: "an attempt that wrote after the next began", text: first + "1.5 saved 2\n2.5 begin 2\n1.5 epoch 3\n", twice: true},
		{name: "an epoch that is missing", text: "1.5 begin 0\n1.5 epoch 1\n1.5 epoch 3\n1.5 end\n", epochs: true, ends: 1},
		{name: "an epoch that was done again in one attempt", text: first + "1.5 epoch 2\n1.5 epoch 3\n1.5 end\n", epochs: true, ends: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := fault.Read(c.text, 3)
			got.Discarded(c.discards)
			if (len(got.Twice) > 0) != c.twice || (len(got.Epochs) > 0) != c.epochs || got.Ends != c.ends || got.Again != c.again {
				t.Errorf("twice %q, epochs %q, %d ends", got.Twice, got.Epochs, got.Ends)
			}
			var reruns []time.Duration
			for _, r := range got.Reruns {
				reruns = append(reruns, r.Ended.Sub(r.Began))
			}
			if !slices.Equal(reruns, c.reruns) {
				t.Errorf("reruns of %v, want %v", reruns, c.reruns)
			}
		})
	}
}

// Whatever is cut out of a journal, or is in it twice, is seen.
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
		if got := fault.Read(strings.Join(lines, ""), total); wrong(got) || got.Ends != 1 {
			rt.Fatalf("a whole journal: %+v", got)
		}
		at := rapid.SampledFrom(epochs).Draw(rt, "at")
		changed := slices.Delete(slices.Clone(lines), at, at+1)
		if rapid.Bool().Draw(rt, "twice") {
			changed = slices.Insert(slices.Clone(lines), at, lines[at])
		}
		if got := fault.Read(strings.Join(changed, ""), total); !wrong(got) {
			rt.Fatalf("nothing wrong seen in %q", changed)
		}
	})
}

// wrong reports whether the job did not do its work once, with no attempt thrown away.
func wrong(t fault.Told) bool { return len(t.Twice)+len(t.Epochs)+len(t.Lost) > 0 }
