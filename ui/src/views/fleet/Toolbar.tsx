// The map's toolbar: drill-down, level, layer, find and hide, map or list. All of it is in the URL; nothing
// is stored here.
import { ActionIcon, Button, SegmentedControl, Tooltip } from "@mantine/core";
import type { NodeRecord } from "~/graph";
import { useUrl } from "~/useUrl";
import { FindField } from "./FindField";
import classes from "./Toolbar.module.css";
import { crumbsOf, type FleetViewState, LEVEL_WORDS, LEVELS } from "./viewState";

interface Props {
  looking: FleetViewState;
  nodes: readonly NodeRecord[];
  fit: () => void;
  legend: boolean;
  setLegend: (shown: boolean) => void;
}

export function Toolbar({ looking, nodes, fit, legend, setLegend }: Props) {
  const [, setUrl] = useUrl();
  const crumbs = crumbsOf(looking);
  return (
    <div className={classes.bar} role="toolbar" aria-label="Fleet Command">
      <nav aria-label="Drill-down" className={classes.crumbs}>
        <ol>
          {crumbs.map((crumb, n) => (
            <li key={crumb.name}>
              {n === crumbs.length - 1 ? (
                <span aria-current="location">{crumb.name}</span>
              ) : (
                <button type="button" onClick={() => setUrl(crumb.to)}>
                  {crumb.name}
                </button>
              )}
            </li>
          ))}
        </ol>
      </nav>
      {!looking.list && (
        <div className={classes.controls}>
          <SegmentedControl
            size="xs"
            aria-label="Layer"
            data={[
              { value: "logical", label: "Logical" },
              { value: "geographic", label: "Geographic" },
            ]}
            value={looking.layer}
            onChange={(layer) => setUrl({ layer: layer === "logical" ? null : layer })}
          />
          {looking.layer === "logical" && (
            <SegmentedControl
              size="xs"
              aria-label="Group by"
              data={[
                { value: "type", label: "By type" },
                { value: "cluster", label: "By cluster" },
              ]}
              value={looking.by}
              onChange={(by) => setUrl({ by: by === "type" ? null : by })}
            />
          )}
          <SegmentedControl
            size="xs"
            aria-label="Level"
            data={[
              { value: "auto", label: "Auto" },
              ...LEVELS.map((level) => ({ value: level, label: capital(LEVEL_WORDS[level]) })),
            ]}
            value={looking.level ?? "auto"}
            onChange={(level) => setUrl({ level: level === "auto" ? null : level })}
          />
        </div>
      )}
      <div className={classes.fields}>
        <FindField name="find" text={looking.find} nodes={nodes} />
        <FindField name="hide" text={looking.hide} nodes={nodes} />
      </div>
      {!looking.list && (
        <>
          <Tooltip label="Show all (0)" openDelay={400}>
            <ActionIcon variant="default" size={26} aria-label="Fit the map" onClick={fit}>
              ⤢
            </ActionIcon>
          </Tooltip>
          <Button
            size="compact-sm"
            variant="default"
            aria-pressed={legend}
            onClick={() => setLegend(!legend)}
          >
            Legend
          </Button>
        </>
      )}
      <SegmentedControl
        size="xs"
        className={classes.as}
        aria-label="Map or list"
        data={[
          { value: "map", label: "Map" },
          { value: "list", label: "List" },
        ]}
        value={looking.list ? "list" : "map"}
        onChange={(as) => setUrl({ list: as === "list" ? "1" : null })}
      />
    </div>
  );
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
