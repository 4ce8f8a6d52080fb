import{a as o}from"./chunk-F6OTQ6ST.js";import"./chunk-5ZEWBVW7.js";import"./chunk-RTQTAYYL.js";import"./chunk-YVE65IM7.js";export{o as Privacy};
