import{a as o,b as r}from"./chunk-4BVCLFLX.js";import"./chunk-6UBML4XB.js";export{r as Uploads,o as fileSize};
