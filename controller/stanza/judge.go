package stanza

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver/jobfile"
)

type judge struct {
	job  *jobfile.Job
	errs jobfile.Errors
}

func (j *judge) fail(at jobfile.Pos, found, want string) {
	j.errs = append(j.errs, jobfile.Error{Pos: at, Found: found, Want: want})
}

type fields struct {
	*judge
	block *jobfile.Block
	data  map[string]datum

	// strange means that the block has unknown keys: most likely they meant
	// what is missing, and one error is enough.
	strange bool
}

// given reports whether one of the keys is in the block, readable or not.
func (f fields) given(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, ok := f.data[name]
		return ok
	})
}

// get is the value of a key that is readable.
func (f fields) get(name string) (datum, bool) {
	d, ok := f.data[name]
	return d, ok && !d.bad
}

// need fails where the block has none of the keys.
func (f fields) need(found, want string, names ...string) {
	if !f.given(names...) && !f.strange {
		f.fail(f.block.Pos, found, want)
	}
}

// read reads the keys of a block into s by the table and reports unknown and repeated ones.
func (j *judge) read(b *jobfile.Block, s subject) fields {
	keys := keysOf(b.Type)
	f := fields{judge: j, block: b, data: map[string]datum{}}
	for _, a := range b.Attrs {
		i := slices.IndexFunc(keys, func(k Key) bool { return k.Name == a.Name })
		if i < 0 {
			j.unknownKey(b, a, namesOf(keys))
			f.strange = true
			continue
		}
		if old, twice := f.data[a.Name]; twice {
			j.fail(a.Pos, a.Name+" is given twice", fmt.Sprintf("the first is at %s", old.key))
			continue
		}
		d, found := readValue(keys[i], a, keys[i].field(&s))
		if d.bad = found != ""; d.bad {
			j.fail(a.ValuePos, found, "want "+keys[i].allowed()+jobfile.Suggestion(d.text, keys[i].Words))
		}
		f.data[a.Name] = d
	}
	return f
}

func (j *judge) unknownKey(b *jobfile.Block, a jobfile.Attr, known []string) {
	if b.Type == "" && slices.Contains(Blocks(), a.Name) && a.Name != "" {
		j.fail(a.Pos, a.Name+" is a block, not a key", "want "+j.spelling(a.Name, "key = value", "key=value"))
		return
	}
	suggestion := cmp.Or(j.elsewhere(b.Type, a.Name), jobfile.Suggestion(a.Name, known))
	if suggestion == "" { // a key in the wrong block
		if i := slices.IndexFunc(Keys(), func(k Key) bool { return k.Name == a.Name }); i >= 0 {
			suggestion = fmt.Sprintf("; %s belongs to %s", a.Name, where(Keys()[i].Block))
		}
	}
	j.fail(a.Pos, fmt.Sprintf("unknown key %q in %s", a.Name, where(b.Type)), "want "+oneOf(known)+suggestion)
}

func (j *judge) unknownBlock(b *jobfile.Block, parent string) {
	words := append([]string{b.Type}, tuning.Each(b.Attrs, func(a jobfile.Attr) string { return b.Type + "." + a.Name })...)
	suggestion := j.elsewhere(parent, words...)
	k, isKey := keyOf(parent, b.Type)
	switch {
	case isKey:
		j.fail(b.Pos, b.Type+" is a key, not a block", "want "+j.spelling(k.Block, k.HCL(), k.Line())+suggestion)
	case parent != "":
		j.fail(b.Pos, fmt.Sprintf("the block %q in %s", b.Type, where(parent)), "want keys only"+suggestion)
	default:
		known := Blocks()[1:]
		suggestion = cmp.Or(suggestion, jobfile.Suggestion(b.Type, known), jobfile.Suggestion(b.Type, namesOf(keysOf(""))))
		j.fail(b.Pos, fmt.Sprintf("unknown block %q in the tuning stanza", b.Type), "want "+oneOf(known)+suggestion)
	}
}

// elsewhere names the keys that other tools call by one of the words: those of the block, else all.
func (j *judge) elsewhere(block string, words ...string) string {
	fold := func(s string) string { return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s)) }
	var here, all []string
	for _, k := range Keys() {
		for other := range strings.FieldsSeq(k.Elsewhere) {
			if !slices.ContainsFunc(words, func(w string) bool { return fold(w) == fold(other) }) {
				continue
			}
			all = append(all, j.spelling(k.Block, k.HCL(), k.Line()))
			if k.Block == block {
				here = append(here, all[len(all)-1])
			}
		}
	}
	if len(here) > 0 {
		all = here
	}
	if len(all) == 0 {
		return ""
	}
	return "; here that is " + oneOf(slices.Compact(all))
}

// spelling is how a stanza writes keys of a block, in the format of the job file.
func (j *judge) spelling(block, hcl, line string) string {
	label := ""
	if hasNames(block) {
		label = " NAME"
	}
	switch {
	case j.job.Format == jobfile.Sbatch:
		return strings.TrimSpace("#TUNE "+block+label) + " " + line
	case block == "":
		return hcl
	case label != "":
		return block + ` "NAME" { ` + hcl + " }"
	}
	return block + " { " + hcl + " }"
}

func keyOf(block, name string) (Key, bool) {
	return tuning.First(keysOf(block), func(k Key) bool { return k.Name == name })
}

func where(block string) string {
	if block == "" {
		return "the tuning stanza"
	}
	return "the " + block + " block"
}

func oneOf(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " or " + list[len(list)-1]
}
