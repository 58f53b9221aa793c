package stanza

import (
	"fmt"
	"slices"
	"strings"

	"pitchpipe/driver/jobfile"
)

type judge struct {
	job  *jobfile.Job
	errs jobfile.Errors
}

func (j *judge) fail(at jobfile.Pos, found, want string) {
	j.errs = append(j.errs, jobfile.Error{Pos: at, Found: found, Want: want})
}

// fields are the keys of one block.
type fields struct {
	*judge
	block *jobfile.Block
	data  map[string]datum // of those that have a readable value
	bad   map[string]bool  // of the others

	// strange says that unknown keys stand there: then what is missing is most
	// likely what they meant, and one error is enough.
	strange bool
}

// given reports whether one of the keys stands in the block, readable or not.
func (f fields) given(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, ok := f.data[name]
		return ok || f.bad[name]
	})
}

func (f fields) get(name string) (datum, bool) {
	d, ok := f.data[name]
	return d, ok
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
	f := fields{judge: j, block: b, data: map[string]datum{}, bad: map[string]bool{}}
	first := map[string]jobfile.Pos{}
	for _, a := range b.Attrs {
		i := slices.IndexFunc(keys, func(k Key) bool { return k.Name == a.Name })
		if i < 0 {
			j.unknownKey(b, a, namesOf(keys))
			f.strange = true
			continue
		}
		if old, twice := first[a.Name]; twice {
			j.fail(a.Pos, a.Name+" is given twice", fmt.Sprintf("the first is at %s", old))
			continue
		}
		first[a.Name] = a.Pos
		d, found := readValue(keys[i], a, keys[i].field(&s))
		if found != "" {
			j.fail(a.ValuePos, found, "want "+keys[i].allowed()+didYouMean(d.text, keys[i].Words))
			f.bad[a.Name] = true
			continue
		}
		f.data[a.Name] = d
	}
	return f
}

func (j *judge) unknownKey(b *jobfile.Block, a jobfile.Attr, known []string) {
	if b.Type == "" && slices.Contains(Blocks(), a.Name) && a.Name != "" {
		j.fail(a.Pos, a.Name+" is a block, not a key", "want "+blockSpelling(j.job.Format, a.Name))
		return
	}
	suggestion := didYouMean(a.Name, known)
	if suggestion == "" { // a key that stands in the wrong block
		if i := slices.IndexFunc(Keys(), func(k Key) bool { return k.Name == a.Name }); i >= 0 {
			suggestion = fmt.Sprintf("; %s belongs to %s", a.Name, where(Keys()[i].Block))
		}
	}
	j.fail(a.Pos, fmt.Sprintf("unknown key %q in %s", a.Name, where(b.Type)), "want "+oneOf(known)+suggestion)
}

func (j *judge) unknownBlock(b *jobfile.Block, parent string) {
	k, isKey := keyOf(parent, b.Type)
	switch {
	case isKey:
		want := k.HCL()
		if j.job.Format == jobfile.Sbatch {
			want = strings.TrimSpace("#TUNE "+parent) + " " + k.Line()
		}
		j.fail(b.Pos, b.Type+" is a key, not a block", "want "+want)
	case parent != "":
		j.fail(b.Pos, fmt.Sprintf("the block %q in %s", b.Type, where(parent)), "want keys only")
	default:
		known := Blocks()[1:]
		suggestion := didYouMean(b.Type, known)
		if suggestion == "" {
			suggestion = didYouMean(b.Type, namesOf(keysOf("")))
		}
		j.fail(b.Pos, fmt.Sprintf("unknown block %q in the tuning stanza", b.Type), "want "+oneOf(known)+suggestion)
	}
}

func blockSpelling(format jobfile.Format, name string) string {
	line, label := "#TUNE "+name, ""
	if name == "knob" {
		line, label = line+" NAME", ` "NAME"`
	}
	if format == jobfile.Sbatch {
		return line + " key=value"
	}
	return name + label + " { key = value }"
}

func keyOf(block, name string) (Key, bool) {
	keys := keysOf(block)
	i := slices.IndexFunc(keys, func(k Key) bool { return k.Name == name })
	if i < 0 {
		return Key{}, false
	}
	return keys[i], true
}

func where(block string) string {
	if block == "" {
		return "the tuning stanza"
	}
	return "the " + block + " block"
}

func didYouMean(word string, known []string) string {
	if near := jobfile.Nearest(word, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

func oneOf(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " or " + list[len(list)-1]
}
