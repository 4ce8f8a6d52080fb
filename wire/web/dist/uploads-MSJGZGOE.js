import{a as o,b as r}from"./chunk-ISV2D2JN.js";import"./chunk-NBMTKBVB.js";export{r as Uploads,o as fileSize};
