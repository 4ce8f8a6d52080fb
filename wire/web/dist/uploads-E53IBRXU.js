import{a as o,b as r}from"./chunk-QAKU6BDF.js";import"./chunk-SLJYOF4I.js";export{r as Uploads,o as fileSize};
