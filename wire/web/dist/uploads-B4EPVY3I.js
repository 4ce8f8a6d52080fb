import{a as o,b as r}from"./chunk-HWT5FUX2.js";import"./chunk-NRQBLXPL.js";export{r as Uploads,o as fileSize};
