package stanza

import (
	"math"
	"strings"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver/jobfile"
)

const maxCount = 1 << 20

// value reads one value of a knob; it is not set where a fault was recorded.
func (j *judge) value(knob string, item jobfile.Item) tuning.Value {
	text, ok := scalarText(item.Value)
	if ok && printable(text) {
		if v, readable := parse(knob, text); readable {
			return v
		}
	}
	j.fail(item.Pos, "a value of "+knob+" is "+describe(item.Value), "want "+valueRule(knob))
	return tuning.Value{}
}

func parse(knob, text string) (tuning.Value, bool) {
	v := tuning.ParseValue(text)
	f := positiveZero(v.Float())
	whole := v.IsNumber() && f == math.Trunc(f) && f <= maxCount
	switch knob {
	case tuning.Cores, tuning.Threads:
		return v, whole && f >= 1
	case tuning.GPUs:
		return tuning.Number(f), whole && f >= 0
	case tuning.Memory:
		b, err := tuning.ParseBytes(text)
		return tuning.Number(float64(b)), err == nil && b > 0
	case tuning.PowerLimit:
		w := tuning.ParseValue(strings.TrimSpace(strings.TrimSuffix(text, "W")))
		return w, w.IsNumber() && w.Float() > 0
	}
	if v.IsNumber() {
		return tuning.Number(f), true
	}
	return v, text != "" && jobfile.IsPlain(text)
}

func valueRule(knob string) string {
	switch knob {
	case tuning.Cores, tuning.Threads:
		return "whole numbers of at least 1"
	case tuning.GPUs:
		return "whole numbers of at least 0"
	case tuning.Memory:
		return "amounts of memory above 0 such as 256MiB or 4GiB"
	case tuning.PowerLimit:
		return "watts above 0"
	}
	return "numbers, or words of letters, digits and " + strings.TrimPrefix(jobfile.ValueBytes, "A-Za-z0-9")
}
