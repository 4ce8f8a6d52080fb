import{a as o,b as r}from"./chunk-P2APZSKW.js";import"./chunk-3SALCXDW.js";import"./chunk-MVXAIXHD.js";import"./chunk-S45M3N2T.js";export{r as Uploads,o as fileSize};
