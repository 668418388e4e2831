/* start.js - begins the page that this one is. What it was as it came, with its time, has then been replaced. */
{
  const show = {runs: showRuns, run: showRun, compare: showCompare, clusters: showClusters}[document.body.dataset.page];
  if (show) document.querySelector("footer").hidden = true;
  if (document.body.dataset.page === "report") showReport(document.querySelector("main"));
  else show?.(document.querySelector("main"));
}
