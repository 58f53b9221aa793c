package command

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/report"
)

func (a *app) knowledge() *cobra.Command {
	var raw bool
	cmd := &cobra.Command{
		Use: "knowledge", Short: "Show what was learned", Args: cobra.NoArgs,
		Long: "For each kind of job and each class: what settings do to seconds, joules and their product, compared\n" +
			"with the owner's own settings; settings that made it worse; and the model that tells classes apart.\n" +
			"An effect is the mean over runs, newer ones with more weight; the spread is that between runs.",
		RunE: a.with(func(ctx context.Context, client *api.Client, _ []string) error {
			if raw {
				return client.Observations(ctx, a.Stdout)
			}
			k, err := client.Knowledge(ctx)
			return a.answer(err, k, "%s", knowledgeText(k))
		}),
	}
	cmd.Flags().BoolVar(&raw, "raw", false, "print the observations as they were measured, one JSON object a line")
	return cmd
}

func percent(logRatio float64) float64 { return math.Expm1(logRatio) * 100 }

func knowledgeText(k api.Knowledge) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Learned from %s of %s.\n", report.Count(k.Observations, "observation"), report.Count(len(k.Kinds), "kind"))
	b.WriteString(modelText(k.Model))
	for _, kind := range k.Kinds {
		peak := "not measured"
		if kind.Peak > 0 {
			peak = kind.Peak.Human()
		}
		fmt.Fprintf(&b, "\n%s: %s, class %s, peak memory %s\n", report.Legible(kind.Kind), report.Count(kind.Runs, "run"), cmp.Or(kind.Class, "unknown"), peak)
		effects(&b, kind.Effects)
		for _, s := range kind.Regressed {
			fmt.Fprintf(&b, "    made it worse: %s\n", s)
		}
	}
	for _, c := range k.Classes {
		fmt.Fprintf(&b, "\nclass %s: %s of %s\n", c.ID, report.Count(c.Runs, "run"), report.Legible(strings.Join(c.Kinds, ", ")))
		effects(&b, c.Effects)
	}
	return b.String()
}

func modelText(m *api.KnownModel) string {
	if m == nil {
		return "No classes yet.\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Model %s (version %d): unknown is what lies outside the radius within which %g %% of a class's runs are expected.\n",
		m.Name, m.Version, 100*m.Confidence)
	for _, s := range m.Strata {
		fmt.Fprintf(&b, "    %s on %s with %s: %s from %s", s.Schema, s.Machine, cmp.Or(s.Settings, "–"), classes(s.K), report.Count(s.Runs, "run"))
		if s.K > 1 {
			fmt.Fprintf(&b, ", silhouette %.2f", s.Silhouette)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func classes(k int) string {
	if k < 2 {
		return []string{"no class", "1 class"}[k]
	}
	return fmt.Sprintf("%d classes", k)
}

func effects(b *strings.Builder, list []api.KnownEffects) {
	if len(list) == 0 {
		b.WriteString("    no other setting was compared with the owner's yet\n")
	}
	for _, of := range list {
		by := ""
		if len(of.Sources) > 0 {
			by = ", joules by " + strings.Join(of.Sources, ", ")
		}
		fmt.Fprintf(b, "    %s%s:\n", of.Objective, by)
		for _, e := range of.Effects {
			fmt.Fprintf(b, "        %-32s %+6.1f %%  spread %.1f %%  %s, newest %s\n",
				e.Settings, percent(e.LogRatio), percent(e.SD), report.Count(e.Runs, "run"), age(e.Age))
		}
	}
}

func age(days float64) string {
	if days < 2 {
		return []string{"today", "yesterday"}[int(max(days, 0))]
	}
	return fmt.Sprintf("%.0f days ago", math.Floor(days))
}
