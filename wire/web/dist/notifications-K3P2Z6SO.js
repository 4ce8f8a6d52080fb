import{a as o,b as r}from"./chunk-CCVL2ZHB.js";import"./chunk-VI2H3CNK.js";import"./chunk-JU67BVEI.js";import"./chunk-Y5UUDIUK.js";export{r as NotificationFields,o as Notifications};
