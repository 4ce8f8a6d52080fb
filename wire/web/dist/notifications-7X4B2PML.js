import{a as o,b as r}from"./chunk-DGNGAPDY.js";import"./chunk-DV5QANLE.js";import"./chunk-DYHP2VQW.js";export{r as NotificationFields,o as Notifications};
