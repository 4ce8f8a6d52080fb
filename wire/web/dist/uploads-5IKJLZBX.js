import{a as o,b as r}from"./chunk-LNDLEUTK.js";import"./chunk-74IXTQGT.js";export{r as Uploads,o as fileSize};
