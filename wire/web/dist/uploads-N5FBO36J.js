import{a as o,b as r}from"./chunk-VLMT4QG3.js";import"./chunk-ZU5UPSDA.js";export{r as Uploads,o as fileSize};
