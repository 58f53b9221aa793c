package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

func word(name string, field func(*Behaviour) *string) key {
	return key{
		name: name,
		want: "want a word of letters, digits, dots, dashes and underscores",
		set: func(b *Behaviour, text string) error {
			for _, r := range text {
				if !strings.ContainsRune("._-", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
					return errWant
				}
			}
			*field(b) = text
			return nil
		},
		get: func(b *Behaviour) string { return *field(b) },
	}
}

func seed() key {
	return key{
		name: "seed",
		want: "want a whole number",
		set: func(b *Behaviour, text string) (err error) {
			if b.Seed, err = strconv.ParseInt(text, 10, 64); err != nil {
				return errWant
			}
			return nil
		},
		get: func(b *Behaviour) string { return strconv.FormatInt(b.Seed, 10) },
	}
}

func memory() key {
	return key{
		name: "memory",
		want: "want an amount of memory up to 64TiB, such as 512MiB or 2GiB",
		set: func(b *Behaviour, text string) error {
			digits, factor := text, int64(1)
			for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
				if rest, ok := strings.CutSuffix(text, unit); ok {
					digits, factor = rest, 1<<(10*(i+1))
				}
			}
			v, err := strconv.ParseInt(digits, 10, 64)
			if err != nil || v < 0 || v > 64<<40/factor {
				return errWant
			}
			b.Memory = v * factor
			return nil
		},
		get: func(b *Behaviour) string { return strconv.FormatInt(b.Memory, 10) },
	}
}

func checkpoint() key {
	k := span("checkpoint", func(b *Behaviour) *time.Duration { return &b.Checkpoint })
	set, get := k.set, k.get
	k.set = func(b *Behaviour, text string) error {
		if err := set(b, text); err != nil {
			return err
		}
		b.Saves = true
		return nil
	}
	k.get = func(b *Behaviour) string {
		if !b.Saves {
			return ""
		}
		return get(b)
	}
	return k
}

func checkpointExit() key {
	k := count("checkpoint_exit", 1, 255, func(b *Behaviour) *int { return &b.CheckpointExit })
	k.want += ", or none"
	set, get := k.set, k.get
	k.set = func(b *Behaviour, text string) error {
		if text == "none" {
			b.CheckpointExit = 0
			return nil
		}
		return set(b, text)
	}
	k.get = func(b *Behaviour) string {
		if b.CheckpointExit == 0 {
			return "none"
		}
		return get(b)
	}
	return k
}

func contended() key {
	return key{
		name: "contended",
		want: "want epochs such as 3 or 3-5 or 3-5,8",
		set: func(b *Behaviour, text string) error {
			var spans []Span
			for part := range strings.SplitSeq(text, ",") {
				from, to, ok := strings.Cut(part, "-")
				if !ok {
					to = from
				}
				first, err1 := strconv.Atoi(from)
				last, err2 := strconv.Atoi(to)
				if err1 != nil || err2 != nil || first < 1 || last < first {
					return errWant
				}
				spans = append(spans, Span{first, last})
			}
			b.Contended = spans
			return nil
		},
		get: func(b *Behaviour) string {
			parts := make([]string, len(b.Contended))
			for i, s := range b.Contended {
				parts[i] = fmt.Sprintf("%d-%d", s.First, s.Last)
			}
			return strings.Join(parts, ",")
		},
	}
}
