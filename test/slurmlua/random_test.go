package slurmlua_test

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"pgregory.net/rapid"

	"pitchpipe/controller/stanza"
)

// values are texts that keys may be given; most fit some key and not another.
func values() []string {
	return []string{
		"apply", "observ", "energy", "blend", "time", "0.5", "1", "2", "0", "-1", "-0", "1e3", "1e-3", "1.5", ".5", "5.", "1e999", "inf", "nan",
		"0x10", "1_000", "+4", "1048576", "1048577", "64,128,256", "1,2,2", "1,1.0", "adam,sgd", "'a b'", "'it',2", `"a \"b\" \\"`, "true", "false", "maybe", "same",
		"60s", "90m", "1h30m", "1.5h", "2d", "1.5d", "-3s", "61m", "3600.1", "1us", "1µs", "1h1", "1.s", ".s", "0s", "' 5s '", "100000000h", "1e300",
		"2MJ", "0.5kWh", "3Wh", "7J", "0J", "1XJ", "'1 GJ'", "256MiB", "4GiB", "1.5GB", "16G", "0.4B", "0.5B", "7K", "9e18", "4611686018427387904",
		"USR1", "SIGUSR1", "SIGKILL", "usr1", "TERM", "SIGFOO", "PATH", "LD_X", "BATCH", "OMP_NUM_THREADS", "9X", "A-B", "cores", "threads",
		"batch", "lr", "memory", "--lr", "-l", "---x", "--1", "max", "min", "log", "pow2", "linear", "'(?P<epoch>.)'", "(", "a,b", "''", `""`,
		"'\u00e9'", "\u2003", "'\u2003'", "'\ufeff'", "'\u0085'", "\xff", "300W", "'300 W'", "W",
	}
}

// tuneLine writes one #TUNE line of known and misspelled words.
func tuneLine(t *rapid.T) string {
	var names []string
	for _, k := range stanza.Keys() {
		names = append(names, k.Name)
	}
	names = append(names, "vals", "mod", "knob", "objectiv", "x")
	word := rapid.SampledFrom(append(stanza.Blocks(), "knob", "knob", "knob", "bugdet", "mode"))
	label := rapid.SampledFrom([]string{"cores", "threads", "memory", "gpus", "power_limit", "batch", "lr", "opt", "core", "1x", "a b", "x-y_z"})
	var b strings.Builder
	b.WriteString("#TUNE")
	block := word.Draw(t, "block")
	if block != "" {
		b.WriteString(" " + block)
	}
	if block == "knob" || rapid.IntRange(0, 20).Draw(t, "labelled") == 0 {
		b.WriteString(" " + label.Draw(t, "label"))
	}
	for range rapid.IntRange(0, 4).Draw(t, "keys") {
		name := rapid.SampledFrom(names)
		if rapid.IntRange(0, 4).Draw(t, "own") > 0 {
			own := []string{}
			for _, k := range stanza.Keys() {
				if k.Block == block {
					own = append(own, k.Name)
				}
			}
			if len(own) > 0 {
				name = rapid.SampledFrom(own)
			}
		}
		b.WriteString(" " + name.Draw(t, "key") + "=" + rapid.SampledFrom(values()).Draw(t, "value"))
	}
	return b.String()
}

// otherLine is a line that is no #TUNE line at its place.
func otherLine(t *rapid.T) string {
	return rapid.SampledFrom([]string{
		"", "# a remark", "#SBATCH -c 4", "#TUNED x", " #TUNE mode=apply", "export BATCH=32", "BATCH=${BATCH:-32}", "LR=$(x)", "A=1; ./a",
		": ${BATCH:=8} \"${OMP_NUM_THREADS:=2}\"", "set -e", "cd /tmp", "module load x", "export A B=2 # c", "LR=0.1 ./train", "./train", "X='a b'\"c\"",
		"BATCH=\"${OMP_NUM_THREADS-3}\"", "export OMP_NUM_THREADS", "A=${B:-${C}}", "export", "=x", "BATCH=adam", "BATCH=a\\ b", "LR={1", "BATCH=\"x y\" LR='3'",
	}).Draw(t, "other")
}

func agree(t *rapid.T, e *examiner, script string) {
	if cty.NormalizeString(script) != script || strings.Contains(script, "\r\n") || !strings.HasPrefix(script, "#!") || strings.Contains(script, "\x00") {
		return // differences that TestTheDifferences lists
	}
	diff, err := compare(e, script)
	if err != nil {
		t.Fatal(err)
	}
	if diff != "" {
		t.Fatalf("%s\n%s", diff, script)
	}
}

func TestThePluginAgreesOnRandomStanzas(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e *examiner) {
		rapid.Check(t, func(t *rapid.T) {
			lines := []string{"#!/bin/sh"}
			for range rapid.IntRange(1, 8).Draw(t, "lines") {
				if rapid.IntRange(0, 5).Draw(t, "kind") == 0 {
					lines = append(lines, otherLine(t))
				} else {
					lines = append(lines, tuneLine(t))
				}
			}
			for range rapid.IntRange(0, 4).Draw(t, "commands") {
				lines = append(lines, otherLine(t))
			}
			agree(t, e, strings.Join(lines, "\n")+"\n")
		})
	})
}

// TestThePluginAgreesOnMutations changes a few bytes or lines of the corpus.
func TestThePluginAgreesOnMutations(t *testing.T) {
	t.Parallel()
	all := corpus(t)
	alphabet := "abcdeklmnoprstuvwxyzTUNEK0123456789=,.'\"\\ \t#-_$\n"
	each(t, func(t *testing.T, e *examiner) {
		rapid.Check(t, func(t *rapid.T) {
			script := rapid.SampledFrom(all).Draw(t, "sample").script
			for range rapid.IntRange(1, 4).Draw(t, "changes") {
				at := rapid.IntRange(10, max(10, len(script))).Draw(t, "at")
				if at > len(script) {
					continue
				}
				char := alphabet[rapid.IntRange(0, len(alphabet)-1).Draw(t, "char")]
				switch rapid.IntRange(0, 4).Draw(t, "how") {
				case 0: // a byte more
					script = script[:at] + string(rune(char)) + script[at:]
				case 1: // a byte less
					script = script[:at] + script[min(at+1, len(script)):]
				case 2: // another byte
					script = script[:at] + string(rune(char)) + script[min(at+1, len(script)):]
				case 3: // a line twice
					lines := strings.SplitAfter(script, "\n")
					i := rapid.IntRange(0, len(lines)-1).Draw(t, "line")
					script = strings.Join(lines[:i+1], "") + strings.Join(lines[i:], "")
				case 4: // another value
					script = script[:at] + rapid.SampledFrom(values()).Draw(t, "value") + script[at:]
				}
			}
			agree(t, e, script)
		})
	})
}
