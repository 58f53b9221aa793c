package stanza

import (
	"fmt"
	"strings"

	"pitchpipe/driver/jobfile"
)

// Reference writes the reference page of the stanza, in Markdown, from Keys.
func Reference() string {
	var b strings.Builder
	b.WriteString(`# The tuning stanza

This page is generated from the table of keys that checks the stanza. A Nomad job file has the keys in a
` + "`tuning`" + ` block of the job or the group, with nested blocks. A batch script has them in ` + "`#TUNE`" + ` lines before the
first command: one block per line, and lines of the same block are merged.
`)
	for _, block := range Blocks() {
		title, prefix := "The top level", "#TUNE "
		if block != "" {
			title, prefix = "Block `"+block+"`", "#TUNE "+block+" "
		}
		if hasNames(block) {
			title, prefix = title+" (with a name)", prefix+"NAME "
		}
		b.WriteString("\n## " + title + "\n\n" + blockMeaning(block) + "\n")
		for _, k := range keysOf(block) {
			b.WriteString("\n### `" + k.Name + "`\n\n" + k.Meaning + "\n\n")
			b.WriteString("- type: " + string(k.Type) + "\n- allowed: " + k.allowed() + "\n")
			if k.Default != "" {
				b.WriteString("- default: `" + k.Default + "`\n")
			}
			if k.Elsewhere != "" {
				b.WriteString("- in other tools: " + strings.Join(strings.Fields(k.Elsewhere), ", ") + "\n")
			}
			b.WriteString("- Nomad: `" + k.HCL() + "`\n")
			if k.Type != TypeFlag { // a script has no own command line
				b.WriteString("- batch script: `" + prefix + k.Line() + "`\n")
			}
		}
	}
	return b.String()
}

func blockMeaning(block string) string {
	switch block {
	case "knob":
		return "One thing that may be set. cores, memory, threads, gpus and power_limit are known to the tuner; every other\n" +
			"name needs exactly one of env, arg and live, and is a hyperparameter unless it says quality = \"same\". A knob has\n" +
			"values, or min and max, or follows another knob. Under Slurm memory is lowered only before a start, and\n" +
			"only if a job killed for it can run again. No knob sets the time limit."
	case "progress":
		return "How the job says that an epoch ended: pattern or report is needed."
	case "quality":
		return "Guards hyperparameters: one changes only before a run starts, once whole runs of its kind show that the result stays\n" +
			"within max_loss and that the run costs less, each at 95 %. Without this block they stay as their owner has them."
	case "profile":
		return "Which epochs the job is judged by."
	case "checkpoint":
		return "How the job is asked to save; exit or done is needed. Without this block a running job is never touched.\n" +
			"A job that prints the line of done should then wait to be requeued, and go on if it is not. One that works on\n" +
			"may end just before the requeue, and then repeats its work since it saved."
	case "search":
		return "A search for hyperparameters: `pitchpipe search run FILE` runs many trials of the job file, and compares them by the\n" +
			"quality, or by the loss where there is no quality block. Submitted by itself the job is one job, and this block\n" +
			"is ignored. With this block mode is by default apply where system is pipelined, else observe."
	case "action":
		return "Something that the job can do to itself between two epochs, such as to widen its network. After an epoch the tuner may\n" +
			"ask for it through the file that PITCHPIPE_SETTINGS names. The file holds how often each action should have been\n" +
			"taken since the job began: {\"widen\": 1}. The job reads it before each epoch and takes the missing actions; after a\n" +
			"restart it counts those before its checkpoint. An action is requested only if runs of its kind with it ended\n" +
			"better than those without, with as much time left; it needs a quality block. Under Nomad no action is\n" +
			"requested; under Slurm the site's task prolog names the file, which may not exist before the first request."
	case "budget":
		return "What tuning may cost over all attempts. Once it is used up, only tuning stops."
	}
	return "What the job is tuned for, and how far."
}

// LuaTable is what Slurm's submission plugin knows of a stanza: blocks, keys and words, the
// bytes of a value, and the knobs whose values have units.
func LuaTable() string {
	var b strings.Builder
	b.WriteString("-- This file is generated from the keys of `pitchpipe validate`. Do not edit it.\n\nreturn {\n  blocks = {\n")
	for _, block := range Blocks() {
		fmt.Fprintf(&b, "    [%q] = {\n      want = %q,\n      keys = {\n", block, oneOf(namesOf(keysOf(block))))
		for _, k := range keysOf(block) {
			fmt.Fprintf(&b, "        %s = %s,\n", k.Name, luaKey(k))
		}
		b.WriteString("      },\n    },\n")
	}
	fmt.Fprintf(&b, "  },\n  want = %q,\n", oneOf(Blocks()[1:]))
	b.WriteString("  amounts = { memory = true, power_limit = true },\n")
	// In a Lua pattern % escapes the byte after it.
	fmt.Fprintf(&b, "  other_bytes = %q,\n}\n", "[^"+strings.NewReplacer("%", "%%", "=-", "=%-").Replace(jobfile.ValueBytes)+"]")
	return b.String()
}

// luaKey lists the words of a key, where it takes nothing else.
func luaKey(k Key) string {
	words := k.Words
	switch k.Type {
	case TypeBool:
		words = []string{"true", "false"}
	case TypeWord:
	default:
		return "{}"
	}
	return fmt.Sprintf("{ want = %q, words = { [%s] = true } }", k.allowed(), `"`+strings.Join(words, `"] = true, ["`)+`"`)
}
